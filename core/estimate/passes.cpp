#include "estimate/passes.h"

namespace shardplan {

Passes run_passes(const Model& model, const Plan& plan, const TimeRates& rates) {
  Passes passes{run_segments(model, plan), {}};
  time_kernels(passes.run.kernels, peaks_of(plan.cluster.gpu, plan.precision.compute), rates,
               passes.timed);
  return passes;
}

}  // namespace shardplan
