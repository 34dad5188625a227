#include "cli/calibration_option.h"

#include <fmt/format.h>

namespace shardplan::cli {

void CalibrationOption::add_flags(CLI::App& command) {
  command
      .add_option("--calibration", file_,
                  "constants and rates from `shardplan calibrate`; without, the built-in ones")
      ->group("Machine");
  command
      .add_option("--machine", machine_,
                  "what `shardplan probe` wrote on the machine that will train, or `shardplan "
                  "anchor` of one of its steps")
      ->group("Machine");
  command.add_flag("--any-gpu", any_gpu_, "use a calibration of another kind of GPU all the same")
      ->group("Machine");
}

Calibration CalibrationOption::load_for(const Job& job) const {
  Calibration calibration = unmoved_for(job);
  if (machine_.empty()) return calibration;
  const Machine machine = load_machine(machine_);
  if (machine.host) move_to(*machine.host, calibration, job);
  if (machine.anchor) correct_by(*machine.anchor, calibration, job);
  return calibration;
}

Machine CalibrationOption::machine() const {
  return machine_.empty() ? Machine{} : load_machine(machine_);
}

void CalibrationOption::move_to(const MeasuredHost& host, Calibration& calibration,
                                const Job& job) const {
  if (!calibration.host)
    throw InputError(
        {.file = file_.empty() ? "the built-in calibration" : file_,
         .key = "machine",
         .message = "does not say what its own host takes: nothing to compare another host with",
         .expected = "what `shardplan probe` wrote on the machine that it was fitted on"});
  calibration.time = on_host(calibration.time, host, *calibration.host, job.plan.cluster.gpu);
  calibration.host = host;
  calibration.host_is_asked = true;
}

void CalibrationOption::correct_by(const Anchor& anchor, Calibration& calibration,
                                   const Job& job) const {
  const std::string& gpu = job.plan.cluster.gpu.name;
  if (anchor.gpu != gpu && !any_gpu_)
    throw InputError({.file = machine_,
                      .key = "anchor.gpu",
                      .message = fmt::format("a step on {}, but this job is on {}",
                                             anchor.gpu.empty() ? "no known GPU" : anchor.gpu, gpu),
                      .expected = "a step on that kind of GPU, or --any-gpu"});
  if (anchor.calibration != calibration.name)
    throw InputError({.file = machine_,
                      .key = "anchor.calibration",
                      .message = fmt::format("corrects '{}', but this is '{}'", anchor.calibration,
                                             calibration.name),
                      .expected = "the calibration that the step was anchored with"});
  calibration.time = slowed_down(calibration.time, anchor.factors);
  calibration.anchor = anchor;
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
