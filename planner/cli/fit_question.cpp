#include "cli/fit_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cost_options.h"
#include "import/import.h"
#include "json/given_texts.h"
#include "load/catalog.h"
#include "load/ds_config/schema.h"
#include "load/hardware.h"
#include "logs/unread_log.h"
#include "questions/serving.h"
#include "questions/workers.h"
#include "render/describe.h"

namespace shardplan::cli {
namespace {

/// What `fit` takes for granted where neither the file nor a flag says anything: what most people
/// who ask this question would run. docs/reference/job.md lists it.
Json defaults(const FitQuestion& a) {
  if (!a.job.files.empty()) {  // the trainer's own, or a whole job's
    return a.cluster.empty() ? Json::object() : Json{{"cluster", a.cluster}};
  }
  Json said{{"checkpointing", "full"}};
  const bool has_model = a.job.given("--model") || a.job.given("--mlp");
  if (!has_model) said["model"] = a.model;
  if (has_model && !a.model.empty())
    said["cluster"] = a.model;  // the words' first is not the model
  if (!a.cluster.empty()) said["cluster"] = a.cluster;
  return said;
}

/// A job brings its own cluster. What cannot be read is refused as a model.
bool is_whole_job(const std::string& model) {
  if (model != kStandardInput && !is_readable(model)) return false;
  try {
    const Json json = read_json_file(model);
    return json.is_object() && (json.value("schema", Json()) == "shardplan.job/1" ||
                                (json.contains("model") && json.contains("cluster")));
  } catch (const InputError&) {
    return false;
  }
}

/// Whether a file is a trainer's by its name: no config.json of a model ends like this. What of its
/// content is not understood, `import` says.
bool is_named_as_trainers(const std::string& path) {
  constexpr std::array kEndings{".yaml", ".yml", ".toml", ".sh", ".slurm", ".py", ".ipynb"};
  return is_readable(path) &&
         std::ranges::any_of(kEndings, [&](const char* ending) { return path.ends_with(ending); });
}

/// A job, or a trainer's file, in the model's place says model and training.
FitQuestion with_file(FitQuestion a) {
  if (!a.job.files.empty()) return a;
  if (!is_whole_job(a.model) && !importing::is_trainer_file(a.model) &&
      !is_named_as_trainers(a.model)) {
    if (is_readable(a.model)) logs::refuse_log(read_text_file(a.model), a.model);
    return a;
  }
  a.job.file = a.model;
  a.job.files = {a.model};
  return a;
}

/// A word in a place that a flag has taken would be read by nobody.
void refuse_unread(const FitQuestion& a) {
  const bool model_flag = a.job.given("--model") || a.job.given("--mlp");
  const bool has_file = !a.job.files.empty();
  if (model_flag && !has_file && !a.model.empty() && !a.cluster.empty())
    throw InputError(
        {.file = "<command line>",
         .key = "MODEL",
         .message = fmt::format("found '{}' beside a flag that says the model", a.model),
         .expected = "one of the two"});
  const std::string& word = model_flag && !has_file ? a.model : a.cluster;
  if (word.empty() || !a.job.given("--cluster")) return;
  const std::string before = model_flag ? "" : fmt::format(" --model {}", a.model);
  throw InputError({.file = "<command line>",
                    .key = "CLUSTER",
                    .message = fmt::format("found '{}' beside --cluster", word),
                    .expected = importing::is_trainer_file(word)
                                    ? fmt::format("a trainer's file first: shardplan fit {}{} "
                                                  "--cluster ...",
                                                  word, before)
                                    : "one of the two"});
}

/// The hardware, and beside it other built-in data that is kept once it was read: what DeepSpeed
/// knows, where nothing says that another framework trains, and the words of the answer.
HardwareCatalog read_built_in(const JobOptions& options) {
  HardwareCatalog hardware;
  const bool deepspeed = options.files.empty() && !options.given("--framework");
  for_each_index(2, 0, [&](std::size_t i) {
    if (i == 0) {
      hardware = load_hardware_catalog();
      return;
    }
    if (deepspeed) ds_schema();
    verdict_word(Fit::fits);
  });
  return hardware;
}

/// "fit 8xH100 llama-3.1-8b".
void refuse_swapped(const FitQuestion& asked) {
  if (asked.cluster.empty() || !find_model(asked.cluster) || find_model(asked.model)) return;
  throw InputError({.file = "<command line>",
                    .key = "model",
                    .message = fmt::format("'{}' is a model, and stands behind '{}'", asked.cluster,
                                           asked.model),
                    .expected = fmt::format("the model first: {} {}", asked.cluster, asked.model)});
}

}  // namespace

void FitQuestion::add_words(CLI::App& command) {
  command.add_option("MODEL", model,
                     "catalogue name, config.json, a size such as 7B, a job or a trainer's file");
  command.add_option("CLUSTER", cluster, "4xA100-40GB, 2x8xH100, 4x40GB, p4d.24xlarge");
}

void FitQuestion::add_flags(CLI::App& command) {
  job.add_flags(command);
  calibration.add_flags(command);
  add_cost_flags(command, cost);
}

void FitQuestion::add_to(CLI::App& command) {
  add_words(command);
  add_flags(command);
}

bool FitQuestion::lacks_model() const {
  return model.empty() && !job.given("--mlp") && !job.given("--model");
}

bool FitQuestion::lacks_cluster() const {
  if (!cluster.empty() || job.given("--cluster")) return false;
  const bool has_model = job.given("--mlp") || job.given("--model");
  return has_model ? model.empty() : !is_whole_job(model);
}

/// Where nobody says how many GPUs an engine is over: as many as serve best.
void choose_degree(WrittenJob& written, Job& job, const Calibration& calibration) {
  const auto degree = degree_left_open(written.json, job, calibration);
  if (!degree) return;
  written.json["workload"]["engine"]["tensor_parallel"] = *degree;
  job = load_job(written.json, written.file, written.context);
  job.assumed.push_back(
      fmt::format("workload.engine.tensor_parallel: {}, which serves best of what the table shows; "
                  "the engine's own default is 1",
                  *degree));
}

JobAnswer answer(const FitQuestion& asked, std::size_t fixes) {
  refuse_swapped(asked);
  const FitQuestion question = with_file(asked);
  refuse_unread(question);
  if (!question.cluster.empty() && is_whole_job(question.model))
    throw InputError({.file = question.model,
                      .message = "is a whole job, with a cluster of its own",
                      .expected = fmt::format("the job alone, or: shardplan fit {} --cluster {}",
                                              question.model, question.cluster)});
  const JobOptions& options = question.job;
  const HardwareCatalog hardware = read_built_in(options);
  WrittenJob written{options.merged(defaults(question)), "<command line>", {.hardware = &hardware}};
  if (!options.file.empty()) {
    written.file = options.file;
    written.context.directory = std::filesystem::path(options.file).parent_path().string();
  }
  Job job = load_job(written.json, written.file, written.context);
  if (options.files.empty() && !job.plan.workload.generation.engine &&
      !options.merged(Json::object()).contains("checkpointing"))
    job.assumed.emplace_back("checkpointing: full");
  Calibration calibration = question.calibration.load_for(job);
  choose_degree(written, job, calibration);
  FixedEstimate found = estimate_and_fix(job, written, calibration, {.threads = 0, .most = fixes});
  JobAnswer a =
      answer_job(std::move(job), std::move(calibration), question.cost, std::move(found.now));
  a.fixes = std::move(found.fixes);
  return a;
}

}  // namespace shardplan::cli
