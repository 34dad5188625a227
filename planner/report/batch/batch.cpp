#include "report/batch/batch.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "questions/estimate_job.h"

namespace shardplan::report {
namespace {

BatchOutcome run_one(const BatchJob& job, const HardwareCatalog& hardware,
                     const Calibration& calibration) {
  BatchOutcome out{job.name, {}, {}, {}};
  try {
    Job loaded = load_batch_job(job, hardware);
    out.estimate = estimate_job(loaded, calibration);
    loaded.rlhf.reset();
    // Rows need names and counts; thousands of graphs would fill the memory.
    loaded.model.segments.clear();
    loaded.model.shared.clear();
    loaded.model.parameters.clear();
    loaded.model.modules.clear();
    loaded.model.groups.clear();
    out.job = std::move(loaded);
  } catch (const InputError& error) {
    out.error = error.what();
  } catch (const OverflowError& error) {
    out.error = std::string("the job is too large to compute: ") + error.what();
  }
  return out;
}

}  // namespace

Json job_document(const BatchJob& job) {
  return job.text.empty() ? read_json_file(job.file) : parse_json(job.text, job.file);
}

Job load_batch_job(const BatchJob& job, const HardwareCatalog& hardware) {
  JobContext context;
  context.hardware = &hardware;
  context.directory = std::filesystem::path(job.file).parent_path().string();
  return load_job(job_document(job), job.file, context);
}

std::vector<BatchOutcome> run_batch(const std::vector<BatchJob>& jobs,
                                    const HardwareCatalog& hardware, const Calibration& calibration,
                                    unsigned threads,
                                    const std::function<void(std::size_t)>& progress) {
  std::vector<BatchOutcome> outcomes(jobs.size());
  std::atomic<std::size_t> next{0};
  std::mutex reporting;
  std::size_t done = 0;
  std::exception_ptr failure;  // of this program: bad jobs are outcomes
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      try {
        outcomes[i] = run_one(jobs[i], hardware, calibration);
      } catch (...) {
        const std::lock_guard lock(reporting);
        failure = std::current_exception();
        next = jobs.size();
        return;
      }
      const std::lock_guard lock(reporting);
      progress(++done);
    }
  };
  {
    std::vector<std::jthread> workers;
    const auto wanted = std::min<std::size_t>(std::max(1U, threads), jobs.size());
    for (std::size_t t = 0; t < wanted; ++t) workers.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
  return outcomes;
}

}  // namespace shardplan::report
