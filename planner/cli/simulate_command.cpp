#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/job_options.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "questions/estimate_job.h"
#include "render/simulation_text.h"
#include "render/trace.h"

namespace shardplan::cli {
namespace {

struct SimulateArguments {
  JobOptions job;
  CalibrationOption calibration;
  std::string trace;
  std::vector<std::int64_t> ranks;
  Output output;
};

/// The ranks asked for, or those whose programs differ. Throws for one that is not there.
std::vector<std::int64_t> ranks_of(const SimulateArguments& a, const Job& job, const Model& share) {
  const std::int64_t world = job.plan.cluster.world();
  for (const std::int64_t rank : a.ranks)
    if (rank < 0 || rank >= world)
      throw InputError({.key = "--rank",
                        .message = fmt::format("there is no rank {}", rank),
                        .expected = fmt::format("0 to {}", world - 1)});
  return a.ranks.empty() ? distinct_ranks(share, job.plan) : a.ranks;
}

Exit run_simulate(const SimulateArguments& a) {
  const Job job = load(a.job.merged(Json::object()), a.job.file);
  require_training(job, "simulate", a.job.file);
  const Calibration calibration = a.calibration.load_for(job);
  const RankModel share(job.model, job.plan);
  std::vector<Program> programs;
  for (const std::int64_t rank : ranks_of(a, job, share.model()))
    programs.push_back(lower(share.model(), job.plan, share.run(), rank));
  std::vector<RankTrace> traces;
  std::vector<StepTimes> times;
  for (const Program& program : programs) {
    RankTrace& r = traces.emplace_back();
    r.rank = program.rank;
    r.program = &program;
    times.push_back(simulate_time(program, job.plan.cluster, job.plan.precision.compute,
                                  calibration.time, &r.trace));
  }
  if (!a.trace.empty()) {
    Output file;
    file.file = a.trace;
    file.write(trace_json(traces, job.plan.cluster.label));
  }
  a.output.write(a.output.json() ? simulation_json(traces, times)
                                 : simulation_text(traces.front(), times.front()));
  if (!a.trace.empty() && !a.output.json())
    fmt::print(stderr, "Wrote {}: open it at ui.perfetto.dev or in chrome://tracing\n", a.trace);
  return Exit::done;
}

}  // namespace

void add_simulate(CLI::App& app, Run& run) {
  auto a = std::make_shared<SimulateArguments>();
  CLI::App* command =
      app.add_subcommand("simulate", "One step kernel by kernel, as a trace for Perfetto");
  command->add_option("JOB", a->job.file, "a job file; flags override it");
  command->add_option("--trace", a->trace, "write the trace (Trace Event Format, JSON)");
  command->add_option("--rank", a->ranks, "ranks to simulate; without, all that differ");
  command->footer(
      "Example: shardplan simulate configs/jobs/llama-2-7b-zero3.json --trace step.json\n"
      "The trace has a track for every stream and a counter of live bytes by category.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return run_simulate(*a); }; });
}

}  // namespace shardplan::cli
