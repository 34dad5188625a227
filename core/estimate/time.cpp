#include "estimate/time.h"

#include "estimate/calibration.h"
#include "timing/product_time.h"

namespace shardplan {
namespace {

/// Dense peak of the type that matrix products run in.
double peak_flops(const Plan& plan) {
  const GpuPeaks peaks =
      datasheet_peaks(plan.cluster.gpu, plan.precision.compute, plan.multiplies_in_tf32());
  const double tensor = tensor_peak(plan.precision.compute, peaks);
  return tensor > 0 ? tensor : peaks.fp32;
}

/// `flops` of the step without recomputation.
TimeEstimate estimate_of(const StepTimes& step, const Plan& plan, double flops) {
  TimeEstimate t;
  const double peak = peak_flops(plan);
  t.step_seconds = step.step;
  t.compute_seconds = step.compute;
  t.exposed_communication_seconds = step.exposed_communication;
  t.exposed_copy_seconds = step.exposed_copies;
  t.optimizer_seconds = step.optimizer;
  t.bubble_seconds = step.bubble;
  t.idle_seconds = step.idle;
  t.communication_seconds = step.communication;
  t.speed_of_light_seconds = step.ideal;
  t.speed_of_light_of_phases = step.ideal_of_phases;
  const Workload& w = plan.workload;
  const double tokens = static_cast<double>(plan.samples_at_once()) *
                        static_cast<double>(w.gradient_accumulation) *
                        static_cast<double>(w.sequence_length);
  t.tokens_per_second = tokens / t.step_seconds;
  t.mfu = flops / t.step_seconds / peak;
  t.hfu = step.flops / t.step_seconds / peak;
  return t;
}

}  // namespace

void add_error(TimeEstimate& time, const Plan& plan, const Calibration& calibration) {
  time.source = plan.cluster.gpu.arch == calibration.arch ? Source::calibrated : Source::assumed;
  time.kind = step_kind(plan);
  time.on_usual_host = !calibration.host_is_asked && !calibration.anchor;
  if (const StepError* error = step_error_of(calibration.step_errors, plan)) time.error = *error;
}

bool knows_time(const Plan& plan) {
  return peak_flops(plan) > 0 && plan.cluster.gpu.memory_bandwidth;
}

double hardware_flops(const Program& program) {
  double flops = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind != Event::Kind::compute) return;
    for_each_kernel(program, e,
                    [&](const Kernel& k) { flops += static_cast<double>(times) * flops_of(k); });
  });
  return flops;
}

TimeEstimate estimate_time(const Program& program, const Plan& plan, const TimeRates& rates) {
  if (!knows_time(plan)) return {};
  const StepTimes step = simulate_time(program, plan, rates);
  return step.flops > 0 ? estimate_of(step, plan, step.flops) : TimeEstimate{};
}

TimeEstimate estimate_time(const Program& program, const Plan& plan, const Passes& passes,
                           const TimeRates& rates) {
  const double flops = model_flops(passes.rank.run(), plan);
  if (!knows_time(plan) || flops <= 0) return {};
  return estimate_of(simulate_time(program, plan, rates, nullptr,
                                   std::span(passes.timed).first(program.run_kernels)),
                     plan, flops);
}

}  // namespace shardplan
