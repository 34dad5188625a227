#include "timing/measured_host.h"

#include <algorithm>

#include "hardware/interconnect.h"
#include "timing/part_factors.h"

namespace shardplan {
double host_factor(const MeasuredHost& host, const MeasuredHost& reference) {
  return host.python_call_seconds / reference.python_call_seconds;
}

TimeRates on_host(TimeRates rates, const MeasuredHost& host, const MeasuredHost& reference,
                  const Gpu& gpu) {
  slow_host(rates.host, host_factor(host, reference));
  if (host.memory_bytes_per_second && reference.memory_bytes_per_second) {
    const double memory = *host.memory_bytes_per_second / *reference.memory_bytes_per_second;
    rates.host.deepspeed_adam_elements_per_second *= memory;
    rates.host.torch_adam_elements_per_second *= memory;
    rates.host.native_adam_bytes_per_second *= memory;
  }
  if (host.to_gpu_bytes_per_second && host.from_gpu_bytes_per_second)
    rates.links.host = std::min(*host.to_gpu_bytes_per_second, *host.from_gpu_bytes_per_second) /
                       gpu.pcie_bandwidth.value_or(kAssumedPcie);
  return rates;
}

}  // namespace shardplan
