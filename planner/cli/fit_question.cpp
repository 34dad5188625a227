#include "cli/fit_question.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cost_options.h"
#include "import/import.h"
#include "json/given_texts.h"
#include "load/hardware.h"

namespace shardplan::cli {
namespace {

/// What `fit` takes for granted where neither the file nor a flag says anything: what most people
/// who ask this question would run. docs/reference/job.md lists it.
Json defaults(const FitQuestion& a) {
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
FitQuestion with_trainer_file(FitQuestion a) {
  if (!a.job.files.empty() || !importing::is_trainer_file(a.model)) return a;
  a.job.file = a.model;
  a.job.files = {a.model};
  return a;
}

}  // namespace

void FitQuestion::add_to(CLI::App& command) {
  command
      .add_option("MODEL", model,
                  "catalogue name, config.json, a size such as 7B, or a trainer's file")
      ->required();
  command.add_option("CLUSTER", cluster, "4xA100-40GB, 2x8xH100, 4x40GB, p4d.24xlarge");
  job.add_flags(command);
  calibration.add_flags(command);
  add_cost_flags(command, cost);
}

bool FitQuestion::lacks_cluster() const {
  const bool is_said = job.given("--mlp") || job.given("--cluster");
  return cluster.empty() && !is_said && !is_whole_job(model);
}

JobAnswer answer(const FitQuestion& asked) {
  const FitQuestion question = with_trainer_file(asked);
  if (is_whole_job(question.model))
    throw InputError({.file = question.model,
                      .message = "is a whole job, with a cluster of its own",
                      .expected = "a model, or: shardplan estimate " + question.model});
  const JobOptions& options = question.job;
  const HardwareCatalog hardware = load_hardware_catalog();
  const WrittenJob written{
      options.merged(defaults(question)), "<command line>", {.hardware = &hardware}};
  Job job = load_job(written.json, written.file, written.context);
  if (options.files.empty() && !job.plan.workload.generation.engine &&
      !options.merged(Json::object()).contains("checkpointing"))
    job.assumed.emplace_back("checkpointing: full");
  Calibration calibration = question.calibration.load_for(job);
  JobAnswer a = answer_job(std::move(job), std::move(calibration), question.cost);
  a.fixes = find_fixes(a.job, written, a.estimate, a.calibration, {.threads = 0});
  return a;
}

}  // namespace shardplan::cli
