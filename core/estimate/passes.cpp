#include "estimate/passes.h"

#include "frameworks/registry.h"
#include "options/tables.h"

namespace shardplan {

Passes run_passes(const Model& model, const Plan& plan, const TimeRates& rates) {
  Passes passes{RankModel(model, plan), {}};
  time_kernels(passes.rank.run().kernels, plan, rates, passes.timed);
  return passes;
}

PassKey pass_key(const Plan& plan) {
  const Regime regime = regime_of(plan);
  const FrameworkTraits& framework = traits_of(plan);
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  PassKey key{number(plan.framework.kind), number(regime.params), number(regime.compute),
              number(regime.adapters), number(regime.widened()), number(regime.linear),
              number(regime.zero3_linear), number(regime.wrapped), number(regime.divides_loss),
              // Tables that the stages share (run_segments).
              number(plan.parallel.pipeline > 1 && !framework.keeps_tables),
              // Parts of a feed-forward add to what earlier micro-batches left (MlpTiles).
              number(plan.mlp_tiles > 0 && plan.workload.gradient_accumulation > 1)};
  add_pass_numbers(job_option_table(), plan, key);
  add_pass_numbers(checkpointing_table(), plan, key);
  add_pass_numbers(training_table(), plan.workload, key);
  add_pass_numbers(parallel_table(), plan, key);
  add_pass_numbers(*framework.options.get(), plan.framework, key);
  return key;
}

}  // namespace shardplan
