// Records by the list of cases that asked for them (measure/cases): which GPUs, which question, and
// whether they were predicted before they ran.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "json/document.h"
#include "load/hardware.h"
#include "load/record.h"

namespace shardplan {

/// The record files below data/measurements by their name.
inline const std::map<std::string, std::string>& record_files() {
  static const std::map<std::string, std::string> files = [] {
    std::map<std::string, std::string> found;
    for (const char* kind : {"training", "inference", "rlhf"})
      for (const auto& entry : std::filesystem::recursive_directory_iterator(
               std::string(SHARDPLAN_SOURCE_DIR "/data/measurements/") + kind))
        if (entry.is_regular_file())
          found.emplace(entry.path().stem().string(), entry.path().string());
    return found;
  }();
  return files;
}

/// Those of the lists' cases that were measured. `mark`: of the cases that bear it alone
/// ("held_out", "later": predicted before they ran).
inline RecordList records_asked_for(const std::vector<std::string>& lists,
                                    const std::string& mark = "") {
  std::vector<std::string> paths;
  for (const std::string& list : lists)
    for (const Json& one :
         read_json_file(SHARDPLAN_SOURCE_DIR "/tests/accuracy/measure/cases/" + list + ".json")) {
      const auto file = record_files().find(one.at("name").get<std::string>());
      const bool wanted = mark.empty() || one.value(mark, false);
      if (wanted && file != record_files().end()) paths.push_back(file->second);
    }
  return load_records(paths, load_hardware_catalog());
}

}  // namespace shardplan
