#include "timing/timed_kernel.h"

#include <algorithm>
#include <cassert>

#include "timing/product_time.h"

namespace shardplan {
namespace {

/// Over lists a launch takes many tensors, so that its wait is nothing for each.
bool launches(const Kernel& k) {
  return k.kind != KernelKind::none && k.kind != KernelKind::multi_tensor;
}

/// How much longer what moves bytes takes in a step (KernelRates::in_step). Rates of PyTorch's
/// kernels are of an H200: each multiprocessor has so many bytes under way at once, 4.8 TB/s over
/// 132, so that slower memory is used to a larger share. Six profiled steps of an H100 want 1.01
/// (data/measurements/rates/h100/h100-profiled-steps.json). Inductor's are of an H100.
double in_step(const Kernel& k, const GpuPeaks& peaks, const KernelRates& rates) {
  // Sums of more than the cache holds find nothing there when they are repeated either.
  if (k.kind == KernelKind::row_reduction && k.bytes >= rates.cache_bytes) return 1;
  // Rates of operands that the cache does not hold (h200-cold-kernels.json).
  if (k.kind == KernelKind::log_softmax_backward) return 1;
  if (k.kind == KernelKind::triton_pointwise || k.kind == KernelKind::triton_reduction)
    return rates.in_step;
  constexpr double kOfEach = 4.8e12 / 132, kLeast = 1.01;
  const double of_each = peaks.memory / peaks.multiprocessors;
  return std::max(kLeast, rates.in_step * std::min(1.0, of_each / kOfEach));
}

/// Long backward passes of attention meet the power limit as products do: one behind the other they
/// have 1,645 of an H200's 1,980 MHz (rates/h200/h200-shared-power.json). Rates that count what
/// moves are of calls far apart, which do not.
double short_of_power(const Kernel& k, const KernelRates& rates) {
  if (rates.attention_backward.memory == 0) return 1;
  return at_power_limit(flops_of(k) / k.calls, rates.product);
}

/// A kernel as a step has it, where rates are of the same one repeated in a CUDA graph. `gapless`:
/// nothing lies between it and the one before.
double seconds_in_step(const Kernel& k, const GpuPeaks& peaks, const KernelRates& rates,
                       bool gapless) {
  const double seconds = kernel_seconds(k, peaks, rates);
  // Our engine's rates are those of its kernels one by one, within a step.
  if (is_engines(k) || k.kind == KernelKind::multi_tensor) return seconds;
  const bool computes = k.kind == KernelKind::product || k.kind == KernelKind::attention ||
                        k.kind == KernelKind::attention_backward ||
                        k.kind == KernelKind::blockwise_update;
  const double longer = k.kind == KernelKind::attention_backward ? short_of_power(k, rates)
                        : computes                               ? 1
                                                                 : in_step(k, peaks, rates);
  return longer * seconds + (gapless ? 0 : k.calls * rates.gap);
}

/// Whose seconds are of the host that eager PyTorch's passes were fitted on. Those of compiled
/// graphs and of Megatron Core's and our engine's parts are of the hosts that their runs had.
bool goes_by_usual_host(Issue issue) {
  switch (issue) {
    case Issue::module:
    case Issue::graph:
    case Issue::library:
    case Issue::launch:
    case Issue::guard:
      return false;
    default:
      return true;
  }
}

/// Calls of C++, which a host whose Python is slower does not slow as much.
bool is_node(Issue issue) {
  return issue == Issue::autograd || issue == Issue::inner || issue == Issue::linear_node;
}

/// Over the seconds that the host was fitted with. At their hosts' pace, backward passes that wait
/// for the host took 0.85 of what their nodes cost (18 runs on H100 and H200 whose host was timed).
double usual_pace(Issue issue, const UsualHost& usual, const Gpu& gpu) {
  constexpr double kNodes = 0.85;
  if (gpu.arch != usual.arch) return 1;
  const double pace = usual.pace_with(gpu);
  if (!goes_by_usual_host(issue)) return 1;
  return is_node(issue) ? kNodes * pace : pace;
}

double issue_seconds(const Kernel& k, const HostRates& host, const Plan& plan) {
  if (k.recorded) return 0;
  const bool view = k.kind == KernelKind::none && k.issue <= Issue::autograd;
  const double share = usual_pace(k.issue, host.usual, plan.cluster.gpu) * (view ? host.empty : 1);
  const double wait = plan.launch_blocking && launches(k) ? host.launch_wait : 0;
  return share * host.seconds[static_cast<std::size_t>(k.issue)] + wait;
}

/// One call after the other; what starts nothing only takes the host's time.
KernelSequence sequence_of(const Kernel& k, const GpuPeaks& peaks, const TimeRates& rates,
                           const Plan& plan) {
  const double calls = k.calls, issue = issue_seconds(k, rates.host, plan);
  if (k.calls == 0) return {};
  if (k.kind == KernelKind::none) return {calls * issue, 0, KernelSequence::kNever};
  // A launch that waits for its kernel has the gap in its wait.
  const bool gapless = plan.records_graphs() || plan.launch_blocking;
  const double seconds = seconds_in_step(k, peaks, rates.kernels, gapless);
  const double each = seconds / calls;
  if (k.issue == Issue::waited) {  // the host starts the next one when this one is done
    const double all = calls * issue + seconds;
    return {all, seconds, all};
  }
  return {calls * issue, seconds, std::max(issue + calls * each, calls * issue + each)};
}

/// The rates of the kernel that fused attention is. Those of FlashAttention-2, PyTorch's and the
/// package's, are shares of what the GPUs that were timed multiply at, which its kernels are not
/// written for; on others it is the one that PyTorch takes anyway.
TimeRates with_attention(TimeRates rates, const Plan& plan) {
  if (plan.sdpa_kernel == SdpaKernel::cudnn_attention) return rates;
  if (plan.cluster.gpu.arch != rates.host.usual.arch) return rates;
  rates.kernels.attention = rates.kernels.flash;
  rates.kernels.attention_backward = rates.kernels.flash_backward;
  return rates;
}

}  // namespace

void time_kernels(std::span<const Kernel> kernels, const Plan& plan, const TimeRates& rates,
                  std::vector<TimedKernel>& timed) {
  assert(timed.size() <= kernels.size());
  const Gpu& gpu = plan.cluster.gpu;
  const GpuPeaks peaks = peaks_of(gpu, plan.precision.compute, plan.multiplies_in_tf32());
  const GpuPeaks most = datasheet_peaks(gpu, plan.precision.compute, plan.multiplies_in_tf32());
  timed.reserve(kernels.size());
  const TimeRates run_with = with_attention(rates, plan);
  for (const Kernel& k : kernels.subspan(timed.size()))
    timed.push_back({sequence_of(k, peaks, run_with, plan), ideal_seconds(k, most), flops_of(k)});
}

}  // namespace shardplan
