#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/job_options.h"
#include "import/document.h"
#include "import/kinds/kind.h"
#include "json/python_json.h"
#include "lint/lint.h"
#include "lint/registry.h"
#include "load/accelerate.h"
#include "load/hardware.h"
#include "load/training_arguments.h"
#include "logs/unread_log.h"
#include "render/lint_data.h"
#include "render/lint_text.h"
#include "render/rules_text.h"
#include "save/file.h"

namespace shardplan::cli {
namespace {

/// A configuration has no more; a larger file is refused before it is looked at.
constexpr std::size_t kLargestConfiguration = 1'000'000;

struct LintArguments {
  std::string config, model, cluster, accelerate, arguments, gpus, fixed, explained;
  bool strict = false, rules = false, overwrite = false;
  JobOptions job;
  Output output;
};

SourceText source(const std::string& file) {
  std::string text = read_text_file(file, kLargestConfiguration);
  if (text.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == text.npos)
    throw InputError({.file = file, .message = "is empty", .expected = "a configuration"});
  return {file, std::move(text)};
}

/// A path in a file starts where the program that reads it was started (accelerate:
/// utils/deepspeed.py HfDeepSpeedConfig opens it as it stands). From elsewhere, people mean the
/// file's own folder.
std::string beside(const std::string& file, const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path;
  return (std::filesystem::path(file).parent_path() / path).string();
}

/// The ds_config that the other files name, or "" when accelerate makes one.
std::string named_config(const LintRequest& request) {
  if (request.arguments) {
    const auto named =
        read_training_arguments(request.arguments->text, request.arguments->file).deepspeed;
    if (named) return beside(request.arguments->file, *named);
  }
  if (request.accelerate) {
    const auto named =
        read_accelerate(request.accelerate->text, request.accelerate->file).deepspeed_file;
    if (named) return beside(request.accelerate->file, *named);
    return "";
  }
  throw InputError({.file = "<command line>",
                    .key = "DS_CONFIG",
                    .message = "missing",
                    .expected = "a ds_config.json, or a file that names one"});
}

/// What the flags say of the job; of the framework only what a ds_config cannot say.
Json job_of(const LintArguments& a) {
  Json job = a.job.merged(Json::object());
  if (!a.model.empty() && !job.contains("model")) job["model"] = a.model;
  for (const std::string& gpus : {a.cluster, a.gpus}) {
    if (gpus.empty()) continue;
    if (gpus.ends_with(".json"))
      job["cluster"] = read_json_file(gpus);
    else if (job.contains("cluster") && job["cluster"].is_object())
      job["cluster"]["name"] = gpus;
    else
      job["cluster"] = gpus;
  }
  if (const auto framework = job.find("framework"); framework != job.end())
    for (const auto& [key, value] : framework->items())
      if (key != "version" && key != "auto")
        throw InputError({.file = "<command line>",
                          .key = key,
                          .message = "is said by the ds_config that is linted",
                          .expected = "no such flag"});
  return job;
}

/// "--fix ds.json" alone: the file to write took the place of the one to read.
void check_fixed(const LintArguments& a) {
  const bool named = !a.config.empty() || !a.accelerate.empty() || !a.arguments.empty();
  if (a.fixed.empty() || named) return;
  throw InputError(
      {.file = "<command line>",
       .key = "--fix",
       .message = fmt::format("'{}' is the file to write, and none to read is given", a.fixed),
       .expected = fmt::format("shardplan lint {} --fix fixed.json", a.fixed)});
}

/// A trainer's own file: its keys are none of DeepSpeed's. What cannot be read is the linter's to
/// say.
const importing::Kind* other_kind(const SourceText& config) {
  try {
    const std::vector<importing::Document> documents =
        importing::parse_documents(config.text, config.file);
    const importing::Kind* kind =
        documents.size() == 1 ? importing::kind_of(documents.front()) : nullptr;
    return kind == nullptr || kind->name == "ds_config" ? nullptr : kind;
  } catch (const InputError&) {
    return nullptr;
  }
}

void check_is_ds_config(const SourceText& config) {
  const importing::Kind* kind = other_kind(config);
  if (kind == nullptr) logs::refuse_log(config.text, config.file);
  if (kind == nullptr) return;
  throw InputError(
      {.file = config.file,
       .message = fmt::format("this is {}, and lint reads DeepSpeed's own file", kind->words),
       .expected = fmt::format(
           "the ds_config.json that it names; the job in it: shardplan import {}", config.file)});
}

LintRequest request_of(const LintArguments& a, const HardwareCatalog& hardware,
                       const Calibration& calibration) {
  check_fixed(a);
  LintRequest request;
  if (!a.accelerate.empty()) request.accelerate = source(a.accelerate);
  if (!a.arguments.empty()) request.arguments = source(a.arguments);
  const std::string config = a.config.empty() ? named_config(request) : a.config;
  if (!config.empty()) {
    request.config = source(config);
    check_is_ds_config(*request.config);
  }
  request.job = job_of(a);
  request.hardware = &hardware;
  request.calibration = &calibration;
  return request;
}

/// Writes the corrected copy; never over a file unless that was asked for.
void write_fixed(const LintArguments& a, const LintRequest& request, const LintReport& report) {
  const Json fixed = repaired(request, report);
  if (fixed.is_null())
    throw InputError({.file = a.config, .message = "cannot be corrected: it could not be read"});
  std::error_code error;
  if (!a.overwrite && std::filesystem::exists(a.fixed, error))
    throw InputError({.file = a.fixed,
                      .key = "--fix",
                      .message = "this file is there already",
                      .expected = "another name, or --overwrite"});
  write_file(a.fixed, dump_python_json(fixed) + "\n");
}

Exit explain(const LintArguments& a) {
  const Rule* rule = find_rule(a.explained);
  if (rule == nullptr) {
    std::vector<std::string_view> ids;
    for (const RuleFamily& family : rule_families())
      for (const Rule& known : family.rules) ids.push_back(known.id.text());
    throw InputError({.file = "<command line>",
                      .key = "--explain",
                      .message = fmt::format("there is no rule '{}'", a.explained),
                      .expected = "one of shardplan lint --rules",
                      .nearest = nearest(a.explained, std::span<const std::string_view>(ids))});
  }
  a.output.write_text(rule_text(*rule));
  return Exit::done;
}

Exit list_rules(const Output& output) {
  if (output.format == "markdown")
    output.write_bytes(rules_markdown());
  else
    output.write_text(rules_text());
  return Exit::done;
}

Exit run_lint(const LintArguments& a) {
  if (!a.explained.empty()) return explain(a);
  if (a.rules) return list_rules(a.output);
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  const LintRequest request = request_of(a, hardware, calibration);
  const LintReport report = lint(request);
  if (!a.fixed.empty()) write_fixed(a, request, report);
  if (a.output.json())
    a.output.write_json(lint_json(report));
  else if (a.output.format == "sarif")
    a.output.write_json(lint_sarif(report, SHARDPLAN_VERSION));
  else
    a.output.write_text(lint_text(report));
  if (report.count(Severity::error) > 0) return Exit::bad_input;
  return a.strict && report.count(Severity::warning) > 0 ? Exit::warnings : Exit::done;
}

}  // namespace

void add_lint(CLI::App& app, Run& run) {
  auto a = std::make_shared<LintArguments>();
  CLI::App* command =
      app.add_subcommand("lint", "Mistakes in a DeepSpeed config, and what each key costs");
  command->add_option("DS_CONFIG", a->config,
                      "a ds_config.json; may be left out where another file names it");
  command->add_option("MODEL", a->model, "as for fit: what each key costs is then said too");
  command->add_option("CLUSTER", a->cluster, "as for fit");
  command->add_option("--accelerate", a->accelerate, "accelerate's configuration, YAML");
  command->add_option("--training-arguments", a->arguments, "HF TrainingArguments, JSON");
  command->add_option("--gpus", a->gpus, "4xA100-40GB, 2x8xH100, or a cluster's JSON file");
  command->add_option("--fix", a->fixed, "write a corrected copy to this file");
  command->add_flag("--overwrite", a->overwrite, "let --fix replace a file");
  command->add_flag("--strict", a->strict, "exit code 1 when there are warnings");
  command->add_flag("--rules", a->rules, "list all rules");
  command->add_option("--explain", a->explained, "explain a rule, with its source");
  command->footer(
      "Example: shardplan lint ds_config.json --model llama-2-7b --gpus 4xA100-40GB\n"
      "Exit code 0: clean, or warnings; 1: warnings, with --strict; 3: errors.");
  a->job.add_flags(*command);
  add_output(*command, a->output, {"text", "json", "sarif", "markdown"});
  command->callback([a, &run] { run = [a] { return run_lint(*a); }; });
}

}  // namespace shardplan::cli
