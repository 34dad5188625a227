#include "cli/calibration_option.h"

#include <fmt/format.h>

#include "load/measured_host.h"

namespace shardplan::cli {

void CalibrationOption::add_flags(CLI::App& command) {
  command
      .add_option("--calibration", file_,
                  "constants and rates from `shardplan calibrate`; without, the built-in ones")
      ->group("Machine");
  command
      .add_option("--machine", machine_,
                  "what `shardplan probe` wrote on the machine that will train: its host's times")
      ->group("Machine");
  command.add_flag("--any-gpu", any_gpu_, "use a calibration of another kind of GPU all the same")
      ->group("Machine");
}

Calibration CalibrationOption::load_for(const Job& job) const {
  Calibration calibration = unmoved_for(job);
  if (machine_.empty()) return calibration;
  const MeasuredHost host = load_measured_host(machine_);
  if (!calibration.host)
    throw InputError(
        {.file = file_.empty() ? "the built-in calibration" : file_,
         .key = "machine",
         .message = "does not say what its own host takes: nothing to compare another host with",
         .expected = "what `shardplan probe` wrote on the machine that it was fitted on"});
  calibration.time = on_host(calibration.time, host, *calibration.host, job.plan.cluster.gpu);
  calibration.host = host;
  return calibration;
}

Calibration CalibrationOption::unmoved_for(const Job& job) const {
  if (file_.empty()) return load_calibration();
  Calibration calibration = load_calibration(file_);
  const Gpu& gpu = job.plan.cluster.gpu;
  if (calibration.arch != gpu.arch && !any_gpu_)
    throw InputError(
        {.file = file_,
         .key = "arch",
         .message = fmt::format("fitted on {} GPUs, but {} is {}", calibration.arch, gpu.name,
                                gpu.arch.empty() ? "of no known kind" : gpu.arch),
         .expected = "a calibration of that kind of GPU, or --any-gpu"});
  return calibration;
}

}  // namespace shardplan::cli
