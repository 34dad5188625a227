// What a search found, as a report shows it: read from shardplan.search/1, whether a search has
// just been run or its file was handed on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "estimate/estimate.h"
#include "json/document.h"
#include "load/job.h"

namespace shardplan::report {

struct FoundPlan {
  std::vector<std::string> values;  ///< one an axis
  Fit fit = Fit::unknown;
  std::int64_t device = 0, device_upper = 0, host = 0;  ///< bytes; a GPU's, a node's
  double step_seconds = 0;                              ///< 0: unknown
  double tokens_per_second = 0;
  std::optional<double> gpu_hours_per_billion_tokens;
  Source time_source = Source::assumed;
  std::optional<StepError> error;  ///< of such steps
};

/// The best plan with one axis at a neighbouring value.
struct FoundOther {
  std::string axis, value;
  Fit fit = Fit::unknown;
  std::int64_t gpu_added = 0;
  double slowdown = 0;  ///< 0: unknown
};

struct RuledOut {
  std::string rule;
  std::int64_t count = 0;
};

struct FoundSearch {
  std::string objective;
  std::int64_t candidates = 0, estimated = 0, simulated = 0;
  bool interrupted = false;
  std::int64_t usable = 0;        ///< bytes of a GPU that a plan may use; 0 when no plan is shown
  std::vector<std::string> axes;  ///< names
  std::vector<FoundPlan> front;   ///< the best comes first
  std::vector<FoundOther> others;
  std::vector<RuledOut> ruled_out;
  std::optional<FoundPlan> near_miss;      ///< when nothing fits
  std::optional<FoundPlan> beyond_limits;  ///< the best without limits of time and cost
};

/// Throws InputError for what is no result of a search, or that of another model or cluster than
/// the job's.
FoundSearch read_search(const Json& document, const std::string& file, const Job& job);

}  // namespace shardplan::report
