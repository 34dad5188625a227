// A run as a measurement record (shardplan.record/1).
#pragma once

#include <string>

#include "json/document.h"
#include "launch/run.h"

namespace shardplan::validator {

/// How a record came about.
struct Producer {
  std::string version, commit, command;
};

Json make_record(const EngineJob& job, const RunReport& report, const Producer& producer,
                 const std::string& name);

/// Timed steps, and their seconds together.
std::int64_t timed_count(const EngineJob& job, const std::vector<StepResult>& steps);
double timed_seconds(const EngineJob& job, const std::vector<StepResult>& steps);
/// Median of the timed steps' seconds.
double median_seconds(const EngineJob& job, const std::vector<StepResult>& steps);

/// The rank whose arena's peak is highest.
const RankReport& fullest_rank(const RunReport& report);

/// A record is there whole or not at all.
void write_record(const Json& record, const std::string& path);

}  // namespace shardplan::validator
