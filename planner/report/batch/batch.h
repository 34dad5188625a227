// Estimates many jobs on all cores. A broken job is an outcome like any other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimate/calibration.h"
#include "hardware/catalog.h"
#include "load/job.h"
#include "report/batch/sweep.h"
#include "report/report.h"

namespace shardplan::report {

struct BatchOutcome {
  std::string name;
  std::optional<Job> job;            ///< what could be read; the model's graph is left out
  std::optional<Estimate> estimate;  ///< absent: `error` says why
  std::string error;
};

/// `progress` is called with the number of finished jobs, by one thread at a time. Outcomes are in
/// the order of the jobs, whatever the number of threads.
std::vector<BatchOutcome> run_batch(const std::vector<BatchJob>& jobs,
                                    const HardwareCatalog& hardware, const Calibration& calibration,
                                    unsigned threads,
                                    const std::function<void(std::size_t)>& progress);

/// The text of a job, and the folder that its paths start from.
Json job_document(const BatchJob& job);
Job load_batch_job(const BatchJob& job, const HardwareCatalog& hardware);

/// The index page. `page_of` names the page of the n-th job, "" where there is none.
Report index_report(const std::vector<BatchOutcome>& outcomes, const std::string& version,
                    const std::function<std::string(std::size_t)>& page_of);

/// One line a job; a broken one has its error in the last column.
std::string batch_csv(const std::vector<BatchOutcome>& outcomes);

}  // namespace shardplan::report
