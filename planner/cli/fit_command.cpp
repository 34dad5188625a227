#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/job_options.h"
#include "import/import.h"
#include "json/document.h"
#include "json/given_texts.h"
#include "load/hardware.h"
#include "questions/estimate_job.h"
#include "questions/fixes.h"
#include "render/cost_text.h"
#include "render/fit_text.h"
#include "render/fixes_text.h"
#include "save/estimate.h"

namespace shardplan::cli {
namespace {

struct FitArguments {
  std::string model, cluster;
  JobOptions job;
  CalibrationOption calibration;
  CostTerms cost;
  Output output;
};

/// What `fit` takes for granted where neither the file nor a flag says anything: what most people
/// who ask this question would run. docs/reference/job.md lists it.
Json defaults(const FitArguments& a) {
  if (!a.job.files.empty()) return Json{{"cluster", a.cluster}};  // the trainer's own
  const bool has_cluster = a.job.given("--cluster");
  if (a.cluster.empty() && has_cluster) return Json{{"model", a.model}, {"checkpointing", "full"}};
  if (a.cluster.empty())  // --mlp stands for the model
    return Json{{"cluster", a.model}, {"checkpointing", "full"}};
  return Json{{"model", a.model}, {"cluster", a.cluster}, {"checkpointing", "full"}};
}

/// A job brings its own cluster; `estimate` takes it. What cannot be read is refused as a model.
bool is_whole_job(const std::string& model) {
  if (model != kStandardInput && !is_readable(model)) return false;
  try {
    const Json json = read_json_file(model);
    return json.is_object() && json.value("schema", Json()) == "shardplan.job/1";
  } catch (const InputError&) {
    return false;
  }
}

/// A trainer's file in the model's place says model and training.
FitArguments with_trainer_file(FitArguments a) {
  if (!a.job.files.empty() || !importing::is_trainer_file(a.model)) return a;
  a.job.file = a.model;
  a.job.files = {a.model};
  return a;
}

Exit fit(const FitArguments& asked) {
  const FitArguments a = with_trainer_file(asked);
  if (is_whole_job(a.model))
    throw InputError({.file = a.model,
                      .message = "is a whole job, with a cluster of its own",
                      .expected = "a model, or: shardplan estimate " + a.model});
  const HardwareCatalog hardware = load_hardware_catalog();
  const WrittenJob written{a.job.merged(defaults(a)), "<command line>", {.hardware = &hardware}};
  Job job = load_job(written.json, written.file, written.context);
  if (a.job.files.empty() && !a.job.merged(Json::object()).contains("checkpointing"))
    job.assumed.emplace_back("checkpointing: full");
  const Calibration calibration = a.calibration.load_for(job);
  const Estimate e = estimate_job(job, calibration);
  const Cost cost = cost_of(job.model, job.plan, e, a.cost);
  const std::vector<Fix> fixes = find_fixes(job, written, e, calibration, {.threads = 0});
  if (a.output.json()) {
    Json json = to_json(e, job);
    json["cost"] = cost_json(cost, job.plan.cluster);
    json["fixes"] = fixes_json(fixes);
    a.output.write_json(json);
  } else {
    a.output.write_text(fit_text(e, job, fixes, calibration, cost));
  }
  return e.verdict.fits ? Exit::done : Exit::does_not_fit;
}

}  // namespace

void add_fit(CLI::App& app, Run& run) {
  auto a = std::make_shared<FitArguments>();
  CLI::App* command = app.add_subcommand("fit", "Will this model train on these GPUs?");
  command
      ->add_option("MODEL", a->model,
                   "catalogue name, config.json, a size such as 7B, or a trainer's file")
      ->required();
  command->add_option("CLUSTER", a->cluster, "4xA100-40GB, 2x8xH100, 4x40GB, p4d.24xlarge");
  command->footer(
      "Example: shardplan fit llama-2-7b 4xA100-40GB --sequence-length 4096 --zero-stage 2\n"
      "Exit code 0: fits; 4: does not fit.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_cost_flags(*command, a->cost);
  add_output(*command, a->output);
  command->callback([a, &run] {
    const bool is_said = a->job.given("--mlp") || a->job.given("--cluster");
    if (a->cluster.empty() && !is_said && !is_whole_job(a->model))
      throw CLI::RequiredError("CLUSTER");
    run = [a] { return fit(*a); };
  });
}

void add_output(CLI::App& command, Output& output, const std::vector<std::string>& formats) {
  command.add_option("--format", output.format, fmt::format("{}", fmt::join(formats, " or ")))
      ->check(CLI::IsMember(formats));
  command.add_option("-o,--output", output.file, "write the answer to a file");
}

}  // namespace shardplan::cli
