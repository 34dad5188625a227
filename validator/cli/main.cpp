// shardplan-validate: runs a job for real and puts the measurement beside the prediction.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "base/format.h"
#include "cli/place.h"
#include "cli/progress.h"
#include "cli/storage_command.h"
#include "cli/together.h"
#include "device/errors.h"
#include "engine/diverged.h"
#include "estimate/estimate.h"
#include "launch/gather.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "memory/arena.h"
#include "record/comparison.h"
#include "record/nodes.h"
#include "record/record.h"
#include "save/file.h"
#include "storage/rates.h"

namespace shardplan::validator {
namespace {

constexpr const char* kAbout =
    "Runs a training job of the native engine and prints what was predicted, what a dry run\n"
    "planned and what was measured. shardplan-validate storage FOLDER measures a disk instead.\n";
constexpr const char* kExample =
    "Example: shardplan-validate configs/jobs/gpt2-tiny-native.json --device host\n"
    "Exit code 0: ran; 3: bad input, or a job the engine cannot run; 5: the device failed, ran "
    "out\n"
    "of memory, or another rank did; 6: the loss is not a number any more.";

enum class Exit { done = 0, internal = 1, usage = 2, bad_input = 3, device = 5, diverged = 6 };

constexpr double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

struct Arguments {
  std::string job, device, record, data, weights, nvme_path, name, hosts, node;
  std::string save, save_form, resume;
  std::optional<std::int64_t> steps, seed, save_every;
  std::int64_t memory_limit = 0, host_memory_limit = 0;
  double peer_timeout = seconds_of(Patience{}.silence);
  double start_timeout = seconds_of(Patience{}.start);
  bool dry_run = false, json = false, quiet = false, events = false, nodes = false;
  bool save_states = false, time_nvme = false;
};

void add_cluster_options(CLI::App& app, Arguments& a) {
  constexpr double kLongest = 86400;
  app.add_option("--hosts", a.hosts,
                 "run on these hosts without a launcher: node0,node1:4 or a file of lines\n"
                 "\"node0 slots=4\"; start the same command once on each");
  app.add_option("--node", a.node, "which of --hosts this one is; default: by name and address");
  app.add_option("--peer-timeout", a.peer_timeout,
                 "seconds without a sign of a rank after which it counts as lost")
      ->check(CLI::Range(0.1, kLongest))
      ->capture_default_str();
  app.add_option("--start-timeout", a.start_timeout, "seconds within which all ranks must come")
      ->check(CLI::Range(0.1, kLongest))
      ->capture_default_str();
  app.add_flag("--nodes", a.nodes, "print a line for each rank of each node, and the slowest rank");
}

void add_save_options(CLI::App& app, Arguments& a) {
  app.add_option("--save", a.save,
                 "folder for checkpoints, step-N after N steps; overrides run.save.path");
  app.add_option("--save-every", a.save_every,
                 "steps from one checkpoint to the next; default: one, after the last step")
      ->check(CLI::PositiveNumber);
  app.add_option("--save-form", a.save_form,
                 "sharded: a file of each rank, to go on from (the default); whole: weights as "
                 "Hugging Face names them; or both")
      ->check(CLI::IsMember({"sharded", "whole", "both"}));
  app.add_flag("--save-states", a.save_states, "whole checkpoints have masters and moments too");
  app.add_option("--resume", a.resume,
                 "go on from a checkpoint, or from the last one in a folder; overrides run.resume");
}

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("JOB", a.job, "a job file (docs/reference/job.md)")->required();
  app.add_option("--device", a.device, "cuda or host; overrides framework.device")
      ->check(CLI::IsMember({"cuda", "host"}));
  app.add_option("--steps", a.steps, "optimizer steps; overrides run.steps");
  app.add_option("--seed", a.seed, "seed of the initial weights; overrides run.seed");
  app.add_option("--data", a.data, "file of text or tokens; overrides run.data");
  app.add_option("--weights", a.weights, "safetensors file or folder; overrides run.weights");
  app.add_option("--nvme-path", a.nvme_path,
                 "folder for states and parameters that are kept on NVMe; overrides run.nvme.path");
  app.add_flag("--time-nvme", a.time_nvme,
               "time that folder's disk first, as the storage command does: what share of its rate "
               "the steps had is told and recorded");
  add_save_options(app, a);
  app.add_option("--memory-limit", a.memory_limit, "largest arena of each rank, in bytes");
  app.add_option("--host-memory-limit", a.host_memory_limit,
                 "most memory of the host that each rank may take, in bytes");
  app.add_option("--record", a.record, "write a measurement record to this file");
  app.add_option("--name", a.name, "name of the record; default: the job file's");
  app.add_flag("--dry-run", a.dry_run, "plan the memory without running");
  app.add_flag("--quiet", a.quiet, "no line per step");
  app.add_option_function<std::string>(
         "--format", [&a](const std::string& f) { a.json = f == "json"; }, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option_function<std::string>(
         "--progress", [&a](const std::string& form) { a.events = form == "json"; },
         "text, or json: one object a line for the start, each step and the end")
      ->check(CLI::IsMember({"text", "json"}));
  add_cluster_options(app, a);
  app.footer(kExample);
}

void merge_save(const Arguments& a, Json& run) {
  if (!a.resume.empty()) run["resume"] = a.resume;
  if (run.contains("save") && !run["save"].is_object()) return;
  if (!a.save.empty()) run["save"]["path"] = a.save;
  if (a.save_every) run["save"]["every"] = *a.save_every;
  if (!a.save_form.empty()) run["save"]["form"] = a.save_form;
  if (a.save_states) run["save"]["whole_states"] = true;
}

/// The job file with what the command line says.
Json merged(const Arguments& a) {
  Json job = read_json_file(a.job);
  if (!job.is_object()) return job;
  if (!a.device.empty() && job.contains("framework")) {
    if (job["framework"].is_string()) job["framework"] = Json{{"name", job["framework"]}};
    const Json& framework =
        job["framework"];  // another than the engine has no device, and is refused
    if (framework.is_object() && framework.value("name", Json()) == "native")
      job["framework"]["device"] = a.device;
  }
  if (!job.contains("run")) job["run"] = Json::object();
  if (!job["run"].is_object()) return job;
  if (a.steps) {
    job["run"]["steps"] = *a.steps;
    // The file's warmup may be for more steps.
    const auto warmup = job["run"].find("warmup");
    if (warmup != job["run"].end() && warmup->is_number_integer() && *warmup >= *a.steps)
      *warmup = std::max<std::int64_t>(0, *a.steps - 1);
  }
  if (a.seed) job["run"]["seed"] = *a.seed;
  if (!a.data.empty()) job["run"]["data"] = a.data;
  if (!a.weights.empty()) job["run"]["weights"] = a.weights;
  if (!a.nvme_path.empty()) job["run"]["nvme"]["path"] = a.nvme_path;
  if (a.time_nvme) job["run"]["nvme"]["timed"] = true;
  merge_save(a, job["run"]);
  return job;
}

void print_header(const EngineJob& job) {
  const Plan& plan = job.plan();
  const ModelFacts& facts = job.job.model.facts;
  const Workload& w = plan.workload;
  fmt::print("{} ({} parameters), ZeRO-{} over {} {}, {}\n",
             facts.name.empty() ? facts.model_type : facts.name,
             format_parameters(job.job.model.parameter_count()), plan.framework.native.zero_stage,
             plan.cluster.world(), job.on_host() ? "ranks on the host" : "GPUs",
             plan.precision.name);
  fmt::print("micro-batch {} × {} tokens, {} per step\n", w.micro_batch, w.sequence_length,
             w.gradient_accumulation);
  const Parallel& p = plan.parallel;
  if (p.tensor > 1) fmt::print("tensor parallel over {} ranks\n", p.tensor);
  if (p.context > 1) fmt::print("sequences shared by {} ranks\n", p.context);
  if (p.pipeline > 1)
    fmt::print(
        "pipeline of {} stages{}, {}\n", p.pipeline,
        p.virtual_pipeline > 1 ? fmt::format(" with {} chunks each", p.virtual_pipeline) : "",
        name_of(p.schedule));
  if (p.model_ranks() > 1) fmt::print("data parallel over {}\n", plan.data_ranks());
  fmt::print("\n");
}

void print_step(const EngineJob& job, const StepProgress& progress) {
  const auto& [index, s, peak, live] = progress;
  // Of a long run, the first steps and then every tenth.
  const bool shown = index < 10 || (index + 1) % 10 == 0 || index + 1 == job.run.steps;
  if (!shown) return;
  fmt::print("step {:>5}  loss {:8.4f}  norm {:9.3e}  lr {:.2e}  {:>8}{}{}{}\n", index + 1, s.loss,
             s.gradient_norm, s.learning_rate, format_seconds(s.seconds),
             s.dropped > 0 ? fmt::format("  {:.0f} rows dropped", s.dropped) : "",
             s.idle_experts > 0 ? fmt::format("  {:.1f} experts idle", s.idle_experts) : "",
             s.skipped ? fmt::format("  skipped: overflow at scale {}", s.loss_scale) : "");
  std::fflush(stdout);
}

/// The memory of a run that is not made.
RunReport planned_only(const Arguments& a, const EngineJob& job) {
  const int world = static_cast<int>(job.plan().cluster.world());
  const std::int64_t limit =
      a.memory_limit > 0 ? a.memory_limit : std::numeric_limits<std::int64_t>::max();
  RunReport report;
  report.ranks.resize(1);
  const auto [rank, plan] = plan_fullest_rank(job, world, dry_workspace(job), limit);
  report.ranks[0].rank = rank;
  report.ranks[0].planned = plan.device;
  report.ranks[0].arena_bytes = plan.extent;
  report.ranks[0].planned_host = plan.host;
  report.ranks[0].planned_save = plan.saved;
  return report;
}

/// One rank of all tells what happens.
void tell_start(const Arguments& a, const EngineJob& job, const Estimate& predicted) {
  if (a.events)
    print_event(start_event(job, predicted));
  else if (!a.quiet && !a.json)
    print_header(job);
}
void tell_step(const Arguments& a, const EngineJob& job, const StepProgress& progress) {
  if (a.events)
    print_event(step_event(job, progress));
  else if (!a.quiet && !a.json)
    print_step(job, progress);
}

void tell_saved(const Arguments& a, const SaveReport& save) {
  if (a.events) return print_event(saved_event(save));
  if (a.quiet || a.json) return;
  fmt::print("saved {} ({} in {})\n", save.folder, format_bytes(save.all_files),
             format_seconds(save.seconds));
  std::fflush(stdout);
}

/// What only a run needs, not its plan.
void check_storage(const EngineJob& job) {
  if (job.training.offload.uses_nvme() && job.run.storage.folder.empty())
    throw InputError(
        {.file = job.file,
         .key = "run.nvme.path",
         .message = "states or parameters are kept on NVMe, and no folder for them is named",
         .expected = "a folder of the disk, here or with --nvme-path"});
}

/// With the requests of the run, over a file of at most as many bytes as a node of it has there.
StorageRate rate_of_disk(const StorageOptions& storage, std::int64_t bytes) {
  constexpr std::int64_t kLeast = std::int64_t{256} << 20, kMost = std::int64_t{4} << 30;
  return measure_storage({.folder = storage.folder,
                          .bytes = std::clamp(bytes, kLeast, kMost),
                          .chunk_bytes = {storage.chunk_bytes},
                          .queue_depths = {storage.queue_depth},
                          .direct = storage.direct,
                          .only = storage.path},
                         [](const StorageRate&) {})
      .best();
}

std::chrono::milliseconds time_of(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

Placement place_of(const Arguments& a, const EngineJob& job) {
  check_storage(job);
  Placement p = place(job, {a.hosts, a.node, {time_of(a.start_timeout), time_of(a.peer_timeout)}});
  p.memory_limit = a.memory_limit;
  p.host_memory_limit = a.host_memory_limit;
  return p;
}

/// What a run, or its plan, has shown.
void tell_end(const Arguments& a, const EngineJob& job, const Estimate& predicted,
              const RunReport& report, const std::string& command) {
  Json record;
  if (!a.dry_run) record = make_record(job, report, {kVersion, kCommit, command}, a.name);
  const bool nodes = a.nodes && !a.dry_run;
  if (a.json || a.events) {
    Json out = comparison_json(job, predicted, report);
    if (!a.dry_run) out["record"] = record;
    if (nodes) out["nodes"] = nodes_json(predicted, report);
    if (a.events) out["event"] = "done";
    fmt::print("{}\n", out.dump(a.events ? -1 : 2));
  } else {
    fmt::print("\n{}", comparison_text(job, predicted, report));
    if (nodes) fmt::print("\n{}", nodes_text(predicted, report));
  }
  if (!a.record.empty() && !a.dry_run) write_record(record, a.record);
}

/// This process's part of a run; the first one tells what happens.
void run_ranks_here(const Arguments& a, const EngineJob& job, const Estimate& predicted,
                    const Placement& placement, const std::string& command) {
  const bool speaks = placement.first_rank == 0;
  if (speaks) tell_start(a, job, predicted);
  RunWatch watch;
  if (speaks)
    watch = {[&](const StepProgress& progress) { tell_step(a, job, progress); },
             [&](const SaveReport& save) { tell_saved(a, save); }};
  std::optional<StorageRate> disk;
  if (speaks && job.run.time_nvme && job.training.offload.uses_nvme())
    disk = rate_of_disk(job.run.storage, predicted.host_per_node.nvme);
  RunReport report = run_job(job, placement, watch);
  report.disk = disk;
  Lookout* const lookout = placement.lookout.get();
  if (lookout != nullptr) gather_reports(*lookout, report);
  if (!speaks) return await_end(*lookout, placement.first_rank, placement.count, job.run.steps);
  if (lookout != nullptr) lookout->at(0, Activity::record, job.run.steps);
  tell_end(a, job, predicted, report, command);
  if (lookout != nullptr) lookout->release();
}

Exit run(const Arguments& a, const std::string& command) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const EngineJob job = load_engine_job(merged(a), a.job, hardware);
  const Estimate predicted = estimate(job.job.model, job.plan(), load_calibration());
  if (!a.record.empty()) check_writable(a.record);
  if (a.dry_run) {
    const RunReport report = planned_only(a, job);
    tell_start(a, job, predicted);
    tell_end(a, job, predicted, report, command);
    return Exit::done;
  }
  const Placement placement = place_of(a, job);
  run_together(placement.lookout, {a.record, command},
               [&] { run_ranks_here(a, job, predicted, placement, command); });
  return Exit::done;
}

Exit parse_and_run(int argc, char** argv, Arguments& a) {
  CLI::App app(kAbout, "shardplan-validate");
  app.set_version_flag("--version", kVersion);
  add_options(app, a);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return Exit::done;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "shardplan-validate: {}\nRun with --help for an example.\n", e.what());
    return Exit::usage;
  }
  std::string command = "shardplan-validate";
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  if (a.name.empty()) a.name = std::filesystem::path(a.job).stem().string();
  return run(a, command);
}

}  // namespace
}  // namespace shardplan::validator

int main(int argc, char** argv) {
  using namespace shardplan;
  using validator::Exit;
  validator::Arguments a;
  const auto failed = [&a](Exit code, const char* prefix, const std::exception& e) {
    if (a.events)
      validator::print_event(
          validator::error_event(prefix + std::string(e.what()), static_cast<int>(code)));
    fmt::print(stderr, "shardplan-validate: {}{}\n", prefix, e.what());
    std::fflush(nullptr);
    // A rank that did not notice may still be running: nothing is torn down under it.
    std::_Exit(static_cast<int>(code));
  };
  try {
    if (argc > 1 && std::string_view(argv[1]) == "storage")
      return validator::run_storage_command(argc - 1, argv + 1);
    return static_cast<int>(validator::parse_and_run(argc, argv, a));
  } catch (const InputError& e) {
    failed(Exit::bad_input, "", e);
  } catch (const OverflowError& e) {
    failed(Exit::bad_input, "the job is too large to compute: ", e);
  } catch (const validator::OutOfMemory& e) {
    failed(Exit::device, "", e);
  } catch (const validator::DeviceError& e) {
    failed(Exit::device, "", e);
  } catch (const validator::PeerFailure& e) {
    failed(Exit::device, "", e);
  } catch (const validator::Diverged& e) {
    failed(Exit::diverged, "", e);
  } catch (const std::exception& e) {
    failed(Exit::internal, "internal error: ", e);
  }
}
