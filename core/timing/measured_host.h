// What one machine's host was measured to take (shardplan.machine/1, docs/explanation/time.md, "One
// number for the host"), and a model's rates moved from the host that they were fitted on to it.
#pragma once

#include <optional>
#include <string>

#include "hardware/cluster.h"
#include "timing/rates.h"

namespace shardplan {

struct MeasuredHost {
  std::string cpu;                                  ///< the processor's own name
  double python_call_seconds = 0;                   ///< a module's call, the median
  std::optional<double> python_call_seconds_least;  ///< the fastest: with nothing beside it
  std::optional<double> block_seconds;  ///< a small network's block in PyTorch, both passes, mean
  std::optional<double> kernel_launch_seconds;    ///< the driver alone; none without a GPU
  std::optional<double> memory_bytes_per_second;  ///< read and written, by all cores
  std::optional<double> to_gpu_bytes_per_second, from_gpu_bytes_per_second;  ///< pinned memory
};

/// How many times as long as `reference` this host takes for what training asks of it: the one
/// number that every time of a host is multiplied by. By its block, as between steps; without one a
/// fifth of what its Python calls take longer.
double host_factor(const MeasuredHost& host, const MeasuredHost& reference);

/// The same for a host that was timed between the steps of a run, in the process that trains:
/// seconds of a small network's block, forward and backward, whose kernels take no time
/// (block_passes in data/probe/host.py). A host's pace changes within minutes, so that a probe
/// made before a run says little of it; this says most.
double host_factor_between_steps(double block_seconds);

/// A host that is known: so many times the seconds, whatever is usual.
void take_host(HostRates& host, double factor);

/// Rates fitted on a machine whose host is `reference`, on one with this host. Times of Python,
/// launches and hooks go by the factor; the CPU's optimizers by the rates of memory where both are
/// known; copies run at the slower of the two rates measured, where they are.
TimeRates on_host(TimeRates rates, const MeasuredHost& host, const MeasuredHost& reference,
                  const Gpu& gpu);

}  // namespace shardplan
