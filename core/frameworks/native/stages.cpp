#include "frameworks/native/stages.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan {
namespace {

/// Forward passes before the first backward one, and the one that begins while they wait for it.
std::int64_t slots_of(const Plan& plan, std::int64_t index) {
  const Parallel& p = plan.parallel;
  const std::int64_t passes = plan.workload.gradient_accumulation * p.virtual_pipeline;
  if (p.pipeline == 1) return 1;
  if (p.schedule == PipelineSchedule::gpipe) return passes;
  const std::int64_t after = p.pipeline - 1 - index;
  const std::int64_t before =
      p.has_chunks() ? 2 * after + (p.virtual_pipeline - 1) * p.pipeline : after;
  return std::min(before + 1, passes);
}

}  // namespace

NativeStage native_stage(const Plan& plan, std::int64_t rank) {
  const Parallel& p = plan.parallel;
  const std::int64_t index = rank / (plan.cluster.world() / p.pipeline);
  return {index, p.pipeline, p.virtual_pipeline, slots_of(plan, index)};
}

NativeLayout layout_of_stage(const NativeLayout& whole, const NativeStage& stage) {
  if (stage.stages == 1) return whole;
  NativeLayout part = whole;
  for (NativeUnit* u : {&part.blocks.front(), &part.experts, &part.adapters, &part.quantized,
                        &part.expert_adapters})
    u->count /= stage.stages;
  if (!stage.last()) part.head.count = 0;
  if (stage.first()) return part;
  part.embedding.count = 0;
  if (!whole.tied || !stage.last()) return part;
  constexpr std::int64_t kElements = 64;
  part.embedding.elements =
      round_up(checked_mul(whole.padded_vocabulary, whole.block.hidden), kElements);
  part.embedding.count = 1;
  return part;
}

}  // namespace shardplan
