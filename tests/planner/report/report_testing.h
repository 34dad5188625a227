// Reports of jobs under configs/, with the records of one file, so that new measurements do not
// change what the tests compare.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "report/build.h"
#include "support/subprocess.h"

namespace shardplan::report {

inline const std::string kSources = SHARDPLAN_SOURCE_DIR;

inline const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}

inline const MeasuredRuns& golden_runs() {
  static const MeasuredRuns runs =
      load_records({kSources + "/tests/golden/training_steps.json"}, hardware());
  return runs;
}

/// Jobs of every kind.
inline std::vector<std::string> config_jobs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSources + "/configs/jobs")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// `file` stands in messages; relative paths of the job start at its folder below the sources.
inline Findings findings_of(const Json& document, const std::string& file) {
  JobContext context;
  context.hardware = &hardware();
  context.directory = kSources + "/configs/jobs";
  return find_out(load_job(document, file, context), load_calibration(), golden_runs(),
                  {.name = file,
                   .version = "0.1.0",
                   .command = "shardplan report " + file,
                   .job = document.dump(2)});
}

/// Found out once in a program.
inline const Findings& findings_of(const std::string& job) {
  static std::map<std::string, Findings> known;
  const auto found = known.find(job);
  if (found != known.end()) return found->second;
  const Json document = read_json_file(kSources + "/configs/jobs/" + job);
  return known.emplace(job, findings_of(document, "configs/jobs/" + job)).first->second;
}

/// A page without its stylesheet, which it has word for word and which changes for all at once.
inline std::string without_style(std::string page) {
  const std::string style = text_of(kSources + "/data/report/style.css");
  const std::size_t at = page.find(style);
  EXPECT_NE(at, std::string::npos) << "the page has no style";
  return at == std::string::npos ? page : page.erase(at, style.size());
}

/// Compares with a golden file; with SHARDPLAN_UPDATE_GOLDEN in the environment, writes it.
inline void expect_golden(const std::string& whole, const std::string& name) {
  const std::string text = name.ends_with(".html") ? without_style(whole) : whole;
  const std::string path = kSources + "/tests/golden/report/" + name;
  if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  EXPECT_TRUE(text == text_of(path))
      << name << " is out of date; see HACKING.md for how to write it again";
}

}  // namespace shardplan::report
