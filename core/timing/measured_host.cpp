#include "timing/measured_host.h"

#include <algorithm>
#include <cmath>

#include "hardware/interconnect.h"
#include "timing/part_factors.h"

namespace shardplan {
namespace {

/// By how much a step's host times grow where a Python call's grows by its whole. On shared hosts a
/// call takes 0.9 or 1.9 µs, and changes between the two within a run; PyTorch's steps hardly
/// change with it (tests/accuracy/measure/cases/host_beside_h200_*.json and
/// host_drawn_h200_1gpu.json, 38 runs on H200, calls of up to 2.2 µs).
constexpr double kPythonShare = 0.2;

/// A block between the steps of a run, on its slowest rank, in the mean: the one with which steps
/// take what is predicted, and the power of a block's time that they go by. Least squares over the
/// logarithms of the factors that 25 host-bound steps need, of the 38 runs above;
/// docs/explanation/time.md has the runs that judge it.
constexpr double kBlockBetweenSteps = 1.96e-3, kPowerBetweenSteps = 0.91;

}  // namespace

double UsualHost::pace_with(const Gpu& gpu) const {
  if (gpu.arch != arch) return 1;
  const auto found = std::ranges::find(gpus, gpu.name, &Beside::gpu);
  return found == gpus.end() ? pace : found->pace;
}

double host_factor(const MeasuredHost& host, const MeasuredHost& reference) {
  if (host.block_seconds) return host_factor_between_steps(*host.block_seconds);
  return 1 + kPythonShare * (host.python_call_seconds / reference.python_call_seconds - 1);
}

void take_host(HostRates& host, double factor) {
  host.usual = {.arch = host.usual.arch, .pace = 1, .gpus = {}};
  slow_host(host, factor);
}

double host_factor_between_steps(double block_seconds) {
  return std::pow(block_seconds / kBlockBetweenSteps, kPowerBetweenSteps);
}

TimeRates on_host(TimeRates rates, const MeasuredHost& host, const MeasuredHost& reference,
                  const Gpu& gpu) {
  // Calls of Python alone say less than that machines with such a GPU have such hosts: 301 eager
  // steps are 11.2 % of tokens/s off by them, 10.4 by the usual host, 10.2 by the slower of the
  // two.
  const double factor = host_factor(host, reference);
  if (host.block_seconds || factor > rates.host.usual.pace_with(gpu)) take_host(rates.host, factor);
  if (host.memory_bytes_per_second && reference.memory_bytes_per_second) {
    const double memory = *host.memory_bytes_per_second / *reference.memory_bytes_per_second;
    rates.host.deepspeed_adam_elements_per_second *= memory;
    rates.host.torch_adam_elements_per_second *= memory;
    rates.host.native_adam_bytes_per_second *= memory;
    rates.host.memory_gbs = gpu.abilities.host_memory_gbs;  // this node's, and none beside an H100
  }
  if (host.to_gpu_bytes_per_second && host.from_gpu_bytes_per_second)
    rates.links.host = std::min(*host.to_gpu_bytes_per_second, *host.from_gpu_bytes_per_second) /
                       gpu.pcie_bandwidth.value_or(kAssumedPcie);
  return rates;
}

}  // namespace shardplan
