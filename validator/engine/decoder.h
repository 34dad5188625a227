// A causal decoder's training step on one rank: embedding, blocks, head and loss, and back.
#pragma once

#include <memory>
#include <optional>

#include "device/fp8.h"
#include "engine/network.h"
#include "model/context_share.h"
#include "model/spec.h"
#include "model/stage_share.h"
#include "plan/checkpointing.h"

namespace shardplan::validator {

struct DecoderRun {
  std::int64_t micro_batch = 1;
  std::int64_t sequence = 1;  ///< all of it
  DType dtype = DType::bf16;
  Keep keep = Keep::everything;
  TensorShare share;     ///< of the ranks that share each layer
  StageShare stage;      ///< and of the stages of a pipeline
  ContextShare context;  ///< and of the ranks that share sequences
  ExpertShare experts;   ///< of the ranks that divide the experts of each layer
  /// Slots that each expert has of each rank, over an even share of its assignments; what has none
  /// is dropped. 0: nothing is dropped.
  double capacity_factor = 0;
  /// What blocks keep waits on the host for the backward pass. Not with stages of a pipeline.
  bool keeps_on_host = false;
  Fp8Recipe fp8 = Fp8Recipe::none;  ///< of the blocks' products
  /// Blocks of the network that keep their inputs alone, whatever the others do. Not with several
  /// chunks of a stage, nor with `keeps_on_host`.
  std::optional<CheckpointedBlocks> again;
  ProductsAgain products_again;  ///< under Keep::products
};

/// Slots that an expert has of each rank (PlaceRows); 0: as many as it is given, which is possible
/// where experts are not divided. Of a rank's `rows` an expert is given each at most once.
std::int64_t expert_capacity(const ExpertsSpec& experts, const DecoderRun& run);

/// `spec` of the whole network.
std::unique_ptr<Network> make_decoder(const DecoderSpec& spec, const DecoderRun& run);

}  // namespace shardplan::validator
