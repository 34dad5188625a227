// axolotl, whose trainers are transformers' and TRL's. Its own fsdp2_prepare_model, in place of
// accelerate's, gives fully_shard the blocks and the root: embeddings, norm and head are one unit,
// which is gathered for all of the backward pass.
#include "trainers/accelerate.h"

namespace shardplan::axolotl {
namespace {

constexpr TrainerDescription description() {
  TrainerDescription d =
      on_accelerate("axolotl", "axolotl",
                    "axolotl 067b021c8, src/axolotl/monkeypatch/accelerate/fsdp2.py, "
                    "utils/trainer.py; its accelerate 1.13, transformers 5.14, TRL 1.8");
  d.shards_ends_apart = false;
  d.shards_table_last = false;
  d.widens_divided = false;
  d.prepares_kbit = false;         // src/axolotl/loaders/model.py casts all of it back
  d.tile_sums = TileSums::copies;  // src/axolotl/monkeypatch/tiled_mlp/base.py
  d.tiles_mlps = true;
  return d;
}

}  // namespace

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer = description();

}  // namespace shardplan::axolotl
