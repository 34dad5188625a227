#include "frameworks/megatron/saved_inputs.h"

#include <algorithm>

namespace shardplan {

bool distributes_saved_activations(const Plan& plan) {
  return plan.framework.megatron.distribute_saved_activations && plan.parallel.tensor > 1 &&
         !plan.parallel.sequence_parallel && recomputes_whole_layers(plan);
}

bool recomputes_whole_layers(const Plan& plan) {
  return plan.checkpointing == Checkpointing::full || plan.keeps_some_blocks();
}

SavedInput megatron_saved_input(const Plan& plan) {
  if (!recomputes_whole_layers(plan)) return {};
  return {CheckpointFunction::megatron, distributes_saved_activations(plan), plan.parallel.tensor,
          false};
}

std::size_t blocks_begin(const ModelRun& run, const StageChunk& chunk) {
  const auto checkpointed = [&](const SegmentRepeat& repeat) {
    return run.segments[repeat.segment].segment->checkpointable;
  };
  return static_cast<std::size_t>(
      std::find_if(chunk.repeats.begin(), chunk.repeats.end(), checkpointed) -
      chunk.repeats.begin());
}

std::int64_t named_embedding_bytes(const ModelRun& run, const Plan& plan, const StageChunk& chunk) {
  const std::size_t blocks = blocks_begin(run, chunk);
  if (!distributes_saved_activations(plan) || !chunk.first || plan.workload.micro_batch > 1 ||
      blocks == 0 || blocks == chunk.repeats.size())
    return 0;
  const SegmentRun& embedding = run.segments[chunk.repeats[blocks - 1].segment];
  const auto& ops = embedding.segment->graph.ops();
  const bool drops =
      std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::dropout; });
  return drops ? 0 : embedding.forward.output_bytes;
}

}  // namespace shardplan
