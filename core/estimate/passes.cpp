#include "estimate/passes.h"

#include "frameworks/registry.h"

namespace shardplan {

Passes run_passes(const Model& model, const Plan& plan, const TimeRates& rates) {
  Passes passes{RankModel(model, plan), {}};
  time_kernels(passes.rank.run().kernels, plan, rates, passes.timed);
  return passes;
}

PassKey pass_key(const Plan& plan) {
  const Regime regime = regime_of(plan);
  const Workload& w = plan.workload;
  const Parallel& p = plan.parallel;
  const FrameworkTraits& framework = traits_of(plan);
  const PassNumbers own = framework.pass_numbers(plan);
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  return {number(plan.framework.kind),
          number(regime.params),
          number(regime.compute),
          number(regime.adapters),
          number(regime.zero3_linear),
          number(plan.checkpointing),
          w.micro_batch,
          w.sequence_length,
          w.target_length,
          p.tensor,
          number(p.sequence_parallel),
          p.sequence,
          p.context,
          p.expert,
          p.expert_tensor,
          number(p.expert_imbalance * 1e9),
          own[0],
          own[1],
          own[2],
          number(plan.launch_blocking),
          number(p.pipeline > 1 &&
                 !framework.keeps_tables)};  // tables that the stages share (run_segments)
}

}  // namespace shardplan
