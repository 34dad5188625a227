// Lints files of tests/planner/lint as `shardplan lint` would.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lint/lint.h"
#include "load/calibration.h"
#include "load/hardware.h"

namespace shardplan {

inline std::filesystem::path lint_folder() {
  return std::filesystem::path(SHARDPLAN_SOURCE_DIR) / "tests/planner/lint";
}

/// A text under its file name alone, as findings show it.
inline SourceText source_at(const std::filesystem::path& path) {
  return {path.filename().string(), read_text_file(path.string())};
}

/// `options` has the flags by name: model, gpus, auto, deepspeed_version, micro_batch,
/// pipeline_parallel, checkpointing.
inline Json job_of(const Json& options) {
  Json job = Json::object();
  const auto move = [&](const char* name, const char* pointer) {
    if (options.contains(name)) job[Json::json_pointer(pointer)] = options[name];
  };
  move("model", "/model");
  move("gpus", "/cluster");
  move("auto", "/framework/auto");
  move("deepspeed_version", "/framework/version");
  move("micro_batch", "/workload/micro_batch");
  move("pipeline_parallel", "/parallel/pipeline");
  move("checkpointing", "/checkpointing");
  move("sequence_length", "/workload/sequence_length");
  move("launch_blocking", "/launch_blocking");
  return job;
}

/// The request with the built-in data.
inline LintRequest complete(LintRequest request) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  request.hardware = &hardware;
  request.calibration = &calibration;
  return request;
}

inline LintReport lint_with(LintRequest request) {
  return lint(complete(std::move(request)));
}

inline LintReport lint_text_of(const std::string& text, const Json& options = Json::object()) {
  LintRequest request;
  request.config = SourceText{"ds.json", text};
  request.job = job_of(options);
  return lint_with(std::move(request));
}

/// NAME.json of a folder, with NAME.yaml and NAME.arguments.json where they are.
inline LintRequest example_request(const std::filesystem::path& folder, const std::string& name,
                                   const Json& options) {
  LintRequest request;
  request.config = source_at(folder / (name + ".json"));
  if (const auto yaml = folder / (name + ".yaml"); std::filesystem::exists(yaml))
    request.accelerate = source_at(yaml);
  if (const auto arguments = folder / (name + ".arguments.json");
      std::filesystem::exists(arguments))
    request.arguments = source_at(arguments);
  request.job = job_of(options);
  return complete(std::move(request));
}

inline LintReport lint_example(const std::filesystem::path& folder, const std::string& name,
                               const Json& options = Json::object()) {
  return lint(example_request(folder, name, options));
}

/// options.json of a rule's folder; what it says under "fail" or "pass" holds for that example.
inline Json options_of(const std::filesystem::path& folder, const std::string& name) {
  const auto file = folder / "options.json";
  if (!std::filesystem::exists(file)) return Json::object();
  Json options = read_json_file(file.string());
  if (options.contains(name)) options.update(Json(options[name]));
  return options;
}

/// The ids of findings of a severity or worse, without repetition.
inline std::vector<std::string> rules_of(const LintReport& report, Severity least) {
  std::vector<std::string> ids;
  for (const LintFinding& finding : report.findings) {
    const std::string id(finding.rule->id.text());
    if (finding.rule->severity >= least && std::find(ids.begin(), ids.end(), id) == ids.end())
      ids.push_back(id);
  }
  return ids;
}

}  // namespace shardplan
