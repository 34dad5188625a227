#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/job_options.h"
#include "questions/estimate_job.h"
#include "render/cost_text.h"
#include "render/estimate_text.h"
#include "save/estimate.h"

namespace shardplan::cli {
namespace {

struct EstimateArguments {
  JobOptions job;
  CalibrationOption calibration;
  CostTerms cost;
  Output output;
};

Exit run_estimate(const EstimateArguments& a) {
  const Job job = a.job.load(a.job.merged(Json::object()));
  const Calibration calibration = a.calibration.load_for(job);
  const Estimate e = estimate_job(job, calibration);
  const Cost cost = cost_of(job.model, job.plan, e, a.cost);
  if (a.output.json()) {
    Json json = to_json(e, job);
    json["cost"] = cost_json(cost, job.plan.cluster);
    a.output.write_json(json);
  } else {
    a.output.write_text(estimate_text(e, job, calibration, cost));
  }
  return e.verdict.fits ? Exit::done : Exit::does_not_fit;
}

}  // namespace

void add_estimate(CLI::App& app, Run& run) {
  auto a = std::make_shared<EstimateArguments>();
  CLI::App* command = app.add_subcommand("estimate", "Memory, traffic and time of one job");
  a->job.add_files(*command);
  command->footer(
      "Example: shardplan estimate configs/jobs/llama-2-7b-zero3.json --micro-batch 2 --format "
      "json\n"
      "Exit code 0: fits; 4: does not fit.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_cost_flags(*command, a->cost);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return run_estimate(*a); }; });
}

}  // namespace shardplan::cli
