#include "frameworks/deepspeed/saved_inputs.h"

#include <algorithm>

#include "frameworks/deepspeed/engine.h"
#include "frameworks/usual.h"
#include "program/pinned_memory.h"

namespace shardplan {
namespace {

/// Blocks, of all stages together: the first stage of a pipeline has as many inputs, those of as
/// many micro-batches as there are stages. And the largest input among them as it is stored between
/// the passes.
struct SavedBlocks {
  std::int64_t count = 0, bytes = 0;
};

SavedBlocks saved_blocks(const SavedInput& how, const ModelRun& run) {
  SavedBlocks blocks;
  std::int64_t input = 0;
  for (const SegmentRun& s : run.segments) {
    if (s.segment->checkpointable) {
      blocks.count += s.segment->repeat;
      blocks.bytes = std::max(blocks.bytes, input);
    }
    input = s.forward.output_bytes;
  }
  if (how.divided) blocks.bytes = ceil_div(blocks.bytes, how.ranks);
  return blocks;
}

}  // namespace

SavedInput deepspeed_saved_input(const Plan& plan) {
  if (plan.checkpointing != Checkpointing::full) return usual::saved_input(plan);
  const std::int64_t ranks = plan.parallel.tensor;
  const DeepSpeedCheckpointing& options = plan.framework.deepspeed.activation_checkpointing;
  if (options.called)
    return {CheckpointFunction::deepspeed, options.partition_activations, ranks,
            options.cpu_checkpointing};
  // PipelineModule's activation_checkpoint_func, which nobody has configured.
  if (plan.parallel.pipeline > 1) return {CheckpointFunction::deepspeed, false, ranks, false};
  return usual::saved_input(plan);
}

std::int64_t deepspeed_held_inputs(const Plan& plan, const ModelRun& run) {
  const SavedInput how = deepspeed_saved_input(plan);
  if (how.function != CheckpointFunction::deepspeed) return 0;
  const DeepSpeedCheckpointing& options = plan.framework.deepspeed.activation_checkpointing;
  const SavedBlocks blocks = saved_blocks(how, run);
  // offload_activations.py: keep_last_count, and of max_fwd_stash_count the one that is underway.
  constexpr std::int64_t kNewest = 2;
  if (how.on_host && !how.divided) return std::min(kNewest, blocks.count) * blocks.bytes;
  if (how.on_host || !options.contiguous_memory_optimization || !options.number_checkpoints)
    return 0;
  const std::int64_t unused = *options.number_checkpoints - blocks.count;
  return std::max<std::int64_t>(0, unused) * round_up(blocks.bytes, kAllocationUnit);
}

HostMemory deepspeed_inputs_on_host(const Plan& plan, const ModelRun& run) {
  const SavedInput how = deepspeed_saved_input(plan);
  if (how.function == CheckpointFunction::torch) return usual::inputs_on_host(plan, run);
  HostMemory host;
  if (!how.on_host) return host;
  const SavedBlocks blocks = saved_blocks(how, run);
  const DeepSpeedCheckpointing& options = plan.framework.deepspeed.activation_checkpointing;
  if (!how.divided) {  // pinned buffers, used again in the next pass
    host.pinned = blocks.count * pinned_block(blocks.bytes);
    return host;
  }
  const bool contiguous = options.contiguous_memory_optimization && options.number_checkpoints;
  const std::int64_t count =
      contiguous ? std::max(blocks.count, *options.number_checkpoints) : blocks.count;
  host.pageable = count * blocks.bytes;
  return host;
}

std::optional<DivisionProblem> deepspeed_checkpoint_problem(const Plan& plan) {
  if (plan.checkpoint_share == CheckpointShare{}) return std::nullopt;
  const auto problem = [](std::string message) {
    return DivisionProblem{"checkpointing.policy", std::move(message), "none, selective or full"};
  };
  if (plan.parallel.pipeline > 1)
    return problem(
        "a PipelineModule checkpoints stretches of layers, each whole "
        "(activation_checkpoint_interval)");
  if (plan.keeps_some_blocks() && plan.framework.deepspeed.zero.stage == 3)
    return problem("blocks: the order of gathers of stage 3 is known for blocks that are alike");
  return std::nullopt;
}

}  // namespace shardplan
