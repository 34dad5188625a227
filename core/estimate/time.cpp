#include "estimate/time.h"

namespace shardplan {
namespace {

/// Dense peak of the type that matrix products run in.
double peak_flops(const Plan& plan) {
  const GpuPeaks peaks = peaks_of(plan.cluster.gpu, plan.precision.compute);
  return size_of(plan.precision.compute) == 2 ? peaks.half : peaks.fp32;
}

}  // namespace

TimeEstimate estimate_time(const Program& program, const Plan& plan, const Passes& passes,
                           const TimeRates& rates) {
  TimeEstimate t;
  const double peak = peak_flops(plan), flops = model_flops(passes.run, plan);
  if (peak <= 0 || !plan.cluster.gpu.memory_bandwidth || flops <= 0) return t;
  const StepTimes step =
      simulate_time(program, plan.cluster, plan.precision.compute, rates, nullptr, passes.timed);
  t.step_seconds = step.step;
  t.compute_seconds = step.compute;
  t.exposed_communication_seconds = step.exposed_communication;
  t.exposed_copy_seconds = step.exposed_copies;
  t.optimizer_seconds = step.optimizer;
  t.idle_seconds = step.idle;
  t.communication_seconds = step.communication;
  t.speed_of_light_seconds = step.ideal;
  const Workload& w = plan.workload;
  const double tokens = static_cast<double>(w.micro_batch * w.gradient_accumulation) *
                        static_cast<double>(w.sequence_length) *
                        static_cast<double>(plan.cluster.world());
  t.tokens_per_second = tokens / t.step_seconds;
  t.mfu = flops / t.step_seconds / peak;
  t.hfu = step.flops / t.step_seconds / peak;
  return t;
}

}  // namespace shardplan
