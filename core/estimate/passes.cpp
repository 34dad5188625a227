#include "estimate/passes.h"

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
  const bool megatron = plan.framework.kind == FrameworkKind::megatron;
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
          number(megatron && plan.framework.megatron.async_tensor_model_parallel_allreduce),
          number(megatron && plan.framework.megatron.tp_comm_overlap),
          number(megatron && plan.framework.megatron.transformer_engine),
          number(plan.launch_blocking),
          number(p.pipeline > 1 && !megatron)};  // tables that the stages share (run_segments)
}

}  // namespace shardplan
