#include "timing/timed_kernel.h"

#include <cassert>

namespace shardplan {
namespace {

/// Over lists a launch takes many tensors, so that its wait is nothing for each.
bool launches(const Kernel& k) {
  return k.kind != KernelKind::none && k.kind != KernelKind::multi_tensor;
}

double issue_seconds(const Kernel& k, const HostRates& host, bool waits) {
  const bool view = k.kind == KernelKind::none && k.issue <= Issue::autograd;
  const double share = view ? host.empty : 1;
  const double wait = waits && launches(k) ? host.launch_wait : 0;
  return share * host.seconds[static_cast<std::size_t>(k.issue)] + wait;
}

/// One call after the other; what starts nothing only takes the host's time.
KernelSequence sequence_of(const Kernel& k, const GpuPeaks& peaks, const TimeRates& rates,
                           bool waits) {
  const double calls = k.calls, issue = issue_seconds(k, rates.host, waits);
  if (k.calls == 0) return {};
  if (k.kind == KernelKind::none) return {calls * issue, 0, KernelSequence::kNever};
  const double seconds = kernel_seconds(k, peaks, rates.kernels);
  const double each = seconds / calls;
  if (k.issue == Issue::waited) {  // the host starts the next one when this one is done
    const double all = calls * issue + seconds;
    return {all, seconds, all};
  }
  return {calls * issue, seconds, std::max(issue + calls * each, calls * issue + each)};
}

}  // namespace

void time_kernels(std::span<const Kernel> kernels, const Plan& plan, const TimeRates& rates,
                  std::vector<TimedKernel>& timed) {
  assert(timed.size() <= kernels.size());
  const GpuPeaks peaks = peaks_of(plan.cluster.gpu, plan.precision.compute);
  timed.reserve(kernels.size());
  for (const Kernel& k : kernels.subspan(timed.size()))
    timed.push_back(
        {sequence_of(k, peaks, rates, plan.launch_blocking), ideal_seconds(k, peaks), flops_of(k)});
}

}  // namespace shardplan
