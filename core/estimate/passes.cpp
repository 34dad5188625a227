#include "estimate/passes.h"

namespace shardplan {

Passes run_passes(const Model& model, const Plan& plan, const TimeRates& rates) {
  Passes passes{RankModel(model, plan), {}};
  time_kernels(passes.rank.run().kernels, peaks_of(plan.cluster.gpu, plan.precision.compute), rates,
               passes.timed);
  return passes;
}

}  // namespace shardplan
