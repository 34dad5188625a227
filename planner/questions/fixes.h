// What would change the verdict, with its price.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "load/job.h"
#include "questions/changes.h"

namespace shardplan {

/// One change or several together, and what the job would need then.
struct Fix {
  std::vector<Change> changes;
  Estimate after;
  std::int64_t gpu_saved = 0;  ///< device bytes: before minus after, point estimates
  double slowdown = 0;         ///< time for each token after over before; 0: unknown
};

inline constexpr std::size_t kAllFixes = std::numeric_limits<std::size_t>::max();

struct Effort {
  unsigned threads = 1;  ///< 0: as many as the machine has
  std::stop_token stop;
  std::size_t most = kAllFixes;  ///< that are wanted
};

/// A job as it is written, for changes that its fields say.
struct WrittenJob {
  Json json;
  std::string file;
  JobContext context;
};

/// The job with changes of its fields, and then of its plan. Throws InputError for what it cannot
/// have with all else in it.
Job changed_job(const Job& job, const WrittenJob& written, const std::vector<Change>& changes);

/// Changes that save at least 1 % of what runs short (of the GPU where all fits), each alone, best
/// first: those that make the job fit, by slowdown, then the rest by bytes saved. When none is
/// enough alone, the cheapest combination found greedily is put first. The first `effort.most` of
/// them. Deterministic; empty when it was asked to stop.
std::vector<Fix> find_fixes(const Model& model, const Plan& plan, const Estimate& now,
                            const Calibration& calibration, const Effort& effort = {});

/// The same for a job of any kind: generation and several models have changes of their own, each
/// one a few fields of `written`, which means `job`.
std::vector<Fix> find_fixes(const Job& job, const WrittenJob& written, const Estimate& now,
                            const Calibration& calibration, const Effort& effort = {});

struct FixedEstimate {
  Estimate now;
  std::vector<Fix> fixes;
};

/// The estimate of a job with its fixes, those that give nothing up beside it on other threads:
/// where somebody waits for both, that takes less time. Not to be asked to stop.
FixedEstimate estimate_and_fix(const Job& job, const WrittenJob& written,
                               const Calibration& calibration, const Effort& effort);

}  // namespace shardplan
