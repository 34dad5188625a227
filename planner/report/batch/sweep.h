// Many jobs at once: the files of a folder, or the product of a sweep file (shardplan.sweep/1).
#pragma once

#include <string>
#include <vector>

#include "json/document.h"

namespace shardplan::report {

/// A job to be, not yet looked at: it may turn out to be broken.
struct BatchJob {
  std::string name;  ///< unique; the file's, or the sweep's values
  std::string file;  ///< for messages and for paths inside the job
  std::string text;  ///< of the job, as JSON; "": in the file, to be read
};

/// The *.json below a folder, in the order of their paths. Throws InputError when there is none.
std::vector<BatchJob> folder_jobs(const std::string& folder);

/// Whether a document is a sweep rather than a job.
bool is_sweep(const Json& document);

/// One job for each combination of the values under "sweep"; the last axis turns fastest. Throws
/// InputError for a sweep that has no jobs, or more than kMostJobs.
inline constexpr std::int64_t kMostJobs = 1'000'000;
std::vector<BatchJob> sweep_jobs(const Json& sweep, const std::string& file);

}  // namespace shardplan::report
