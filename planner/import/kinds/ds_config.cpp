// A DeepSpeed configuration alone.
#include "import/kinds/kind.h"
#include "import/vocabulary.h"

namespace shardplan::importing::ds_config {
namespace {

bool is_ds_config(const Document& d) {
  if (d.is_command()) return false;
  if (has_any(d, {"zero_optimization", "train_micro_batch_size_per_gpu",
                  "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer"}))
    return true;
  return has_any(d, {"fp16.enabled", "bf16.enabled", "optimizer.type", "scheduler.type"});
}

void read(const Document& d, Recipe& recipe) {
  Key key(d, "", d.value, "", recipe);
  attach_ds_config(key, d.value, "");
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"ds_config", "a DeepSpeed configuration", is_ds_config, read};

}  // namespace shardplan::importing::ds_config
