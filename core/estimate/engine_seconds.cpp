#include "estimate/engine_seconds.h"

#include "base/checked.h"
#include "base/diagnostic.h"
#include "frameworks/registry.h"
#include "lowering/inference/generate.h"
#include "lowering/rank_model.h"
#include "rollout/packed_products.h"

namespace shardplan {

void add(TimeEstimate& sum, const EnginePassTime& pass, double times) {
  sum.step_seconds += times * pass.seconds();
  sum.compute_seconds += times * (pass.products + pass.attention + pass.between);
  sum.exposed_communication_seconds += times * pass.exchanges;
  sum.communication_seconds += times * pass.exchanges;
  sum.idle_seconds += times * pass.host;
}

void add_idle(TimeEstimate& sum, double seconds) {
  sum.step_seconds += seconds;
  sum.idle_seconds += seconds;
}

double peak_seconds(const Model& model, Plan plan, const Pass& pass, const Pass* before,
                    const TimeRates& rates) {
  plan.framework = {};
  plan.framework.kind = default_framework(1);
  plan.parallel = {};
  plan.workload.micro_batch = 1;
  const TimeEstimate time = estimate_time(lower_pass(model, plan, pass, before), plan, rates);
  return time.mfu * time.step_seconds;
}

double mapping_seconds(const RolloutEngine& engine, const EngineMemory& memory) {
  const EngineSleep& rates = engine.engine->sleep;
  if (!engine.sleeps() || rates.wakes_bytes_per_second <= 0) return 0;
  const auto bytes = static_cast<double>(checked_add(memory.weights, memory.cache));
  return bytes / rates.wakes_bytes_per_second + bytes / rates.sleeps_bytes_per_second;
}

bool is_timed(const Model& model, const Plan& plan, const RolloutEngine& engine) {
  try {
    const RankModel share(model, engine_share(plan, engine));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace shardplan
