// Measured rates (shardplan.rates/1) and step times (shardplan.step_times/1): what calibrations are
// fitted to. docs/explanation/time.md, "Records".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/job.h"
#include "program/kernel.h"
#include "timing/measured_host.h"

namespace shardplan {

/// One timed call on one GPU.
struct KernelRow {
  Kernel kernel;
  std::string form;     ///< as it was measured: "weight_gradient", "gelu"
  bool graphed = true;  ///< timed without launches
  double seconds = 0;
};

/// One timed collective among `ranks`, or a pinned copy (ranks 1).
struct LinkRow {
  std::string form;
  std::int64_t ranks = 1;
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// How long the host took to issue the phases of a job's step.
struct HostRow {
  std::string name;
  Job job;
  std::array<double, 3> seconds{};  ///< by Phase; 0: not recorded
  double step_seconds = 0;
  double product_seconds = 0;  ///< of the GPU's matrix products; 0: not recorded
};

struct RateRecord {
  std::string file;
  std::string gpu;                   ///< as the driver names it: "NVIDIA H200"
  bool launch_blocking = false;      ///< measured with CUDA_LAUNCH_BLOCKING=1
  std::optional<MeasuredHost> host;  ///< what `shardplan probe` says of the machine
  std::vector<KernelRow> kernels;
  std::vector<LinkRow> links;
  std::vector<HostRow> hosts;
};

/// Throws InputError naming the file and what is wrong in it.
RateRecord load_rate_record(const std::string& path, const JobContext& context);

}  // namespace shardplan
