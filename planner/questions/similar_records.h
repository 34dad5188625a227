// How well jobs like this one were predicted: the measured runs that are most like it.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "questions/accuracy.h"

namespace shardplan {

/// What the runs share with the job. Fewer than kFewestRuns runs say little: the next wider circle
/// is taken then.
enum class Similarity : std::uint8_t {
  framework_gpus_precision,
  framework_precision,
  framework,
  any,
};
inline constexpr std::int64_t kFewestRuns = 3;

struct SimilarRecords {
  Similarity similarity = Similarity::any;
  GroupSummary errors;
  std::vector<std::size_t> runs;  ///< which of the measured runs they are
  std::int64_t held_out = 0;      ///< of errors.records: in no fit of any constant
  std::vector<std::string> gpus;  ///< that they ran on, in the order of the records
  std::int64_t same_gpu = 0;      ///< of errors.records: on the job's own GPU
};

/// Measured runs that many jobs are held against. Each is predicted once, when it is first asked
/// for, by whichever thread.
class MeasuredRuns {
 public:
  MeasuredRuns(RecordList list);  // NOLINT(google-explicit-constructor): a list of runs is runs

  const std::vector<Record>& records() const { return records_; }
  /// nullptr for a run whose job cannot be estimated.
  const Comparison* compared(std::size_t run) const;
  bool is_held_out(std::size_t run) const { return held_out_[run]; }

 private:
  struct Predicted {
    std::once_flag once;
    std::optional<Comparison> comparison;
  };
  std::vector<Record> records_;
  std::vector<bool> held_out_;  ///< by data/measurements/split.json, of every fit
  Calibration calibration_;
  mutable std::deque<Predicted> predicted_;
};

SimilarRecords find_similar_records(const Plan& plan, const MeasuredRuns& runs);

}  // namespace shardplan
