// Files that a person takes away: the report, and what runs the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/answer.h"
#include "models/background.h"
#include "models/job_document.h"

namespace shardplan::gui {

/// Writes the report of `shardplan report` in `language`; the extension of `path` chooses the
/// format: .html, .md, .json or .csv. Throws InputError for another one, or when it cannot be
/// written. Nothing is written once `control` is asked to stop.
void write_report(const Answer& answer, const Json& job, const Workbench& workbench,
                  const std::string& path, const std::string& language, const std::string& version,
                  const Background::Control& control);

/// The command line that answers the same question, wherever it is run: with flags, or with the
/// file that the job is saved in. Nothing for a job that no flags can say and no file has.
std::optional<std::string> command_to_copy(const JobDocument& document);

struct PlanFile {
  std::string name;  ///< "job.json"
  std::string text;
  bool program = false;  ///< its owner may run it
};

/// What runs the plan of a complete job.
std::vector<PlanFile> plan_files(const Answer& answer, const Json& job);

/// Those that are in the folder already, and say something else.
std::vector<std::string> files_in_the_way(const std::vector<PlanFile>& files,
                                          const std::string& folder);

/// Writes all of them into a folder or none; throws InputError for one that cannot be written.
void write_plan_files(const std::vector<PlanFile>& files, const std::string& folder);

}  // namespace shardplan::gui
