#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/job_options.h"
#include "estimate/time.h"
#include "questions/estimate_job.h"
#include "questions/simulate.h"
#include "render/estimate_text.h"
#include "render/simulation_text.h"
#include "render/trace.h"
#include "save/estimate.h"
#include "save/file.h"

namespace shardplan::cli {
namespace {

struct SimulateArguments {
  JobOptions job;
  CalibrationOption calibration;
  std::string trace;
  std::vector<std::int64_t> ranks;
  Output output;
};

/// How far off such steps were: beside every time that is printed.
TimeEstimate error_of(const Job& job, const Calibration& calibration) {
  Plan plan = job.plan;
  if (job.rlhf) plan.workload.kind = WorkKind::rlhf;
  TimeEstimate time;
  add_error(time, plan, calibration);
  if (job.rlhf && job.rlhf->rollout) {  // as estimate_rlhf() has it
    time.kind = "rollout";
    time.error.reset();
  }
  return time;
}

Json answer_json(const std::vector<SimulatedRank>& ranks, const TimeEstimate& time) {
  Json json = simulation_json(ranks);
  if (time.error) json["error"] = step_error_json(*time.error);
  return json;
}

Exit run_simulate(const SimulateArguments& a) {
  const Job job = a.job.load(a.job.merged());
  require_steps(job, "simulate", a.job.file);
  const Calibration calibration = a.calibration.load_for(job);
  const std::vector<SimulatedRank> ranks = simulate_job(job, calibration, a.ranks);
  if (!a.trace.empty()) write_file(a.trace, trace_json(ranks, job.plan.cluster.label));
  const TimeEstimate time = error_of(job, calibration);
  if (a.output.json())
    a.output.write_json(answer_json(ranks, time));
  else
    a.output.write_text(simulation_text(ranks.front()) + error_line(time) +
                        a.job.assumed_checkpointing());
  if (!a.trace.empty() && !a.output.json())
    tell(fmt::format("Wrote {}: open it at ui.perfetto.dev or in chrome://tracing\n", a.trace));
  return Exit::done;
}

}  // namespace

void add_simulate(CLI::App& app, Run& run) {
  auto a = std::make_shared<SimulateArguments>();
  CLI::App* command =
      app.add_subcommand("simulate", "One step kernel by kernel, as a trace for Perfetto");
  a->job.add_files(*command);
  command->add_option("--trace", a->trace, "write the trace (Trace Event Format, JSON)");
  command->add_option("--rank", a->ranks, "ranks to simulate; without, all that differ");
  command->footer(
      "Example: shardplan simulate configs/jobs/llama-2-7b-zero3.json --trace step.json\n"
      "The trace has tracks for the phases, the host and every stream, and a counter of live bytes "
      "by\n"
      "category. Of long generations it has the prompt and 32 tokens at even distances.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return run_simulate(*a); }; });
}

}  // namespace shardplan::cli
