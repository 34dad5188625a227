// Predictions against measurements: each figure of each record, and how far off they are as a
// whole. Errors are relative: (predicted - measured) / measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "estimate/calibration.h"
#include "estimate/verdict.h"
#include "load/record.h"
#include "questions/peer_rules.h"
#include "questions/verdicts.h"

namespace shardplan {

/// One record with what shardplan, and what other programs' rules say of its job.
struct Comparison {
  std::string name, file;
  std::string framework;   ///< "ddp", "deepspeed stage 2"
  std::string model;       ///< the family: "llama"
  std::string precision;   ///< the preset's name
  std::string step_kind;   ///< of what its step's error is told with
  bool compiled = false;   ///< torch.compile runs the step
  bool by_engine = false;  ///< an engine with a precision of its own steps, as DeepSpeed's does
  Figures predicted, measured;
  /// Predicted at the pace that the host had between the record's steps; none where nobody timed
  /// it.
  std::optional<double> step_seconds_as_timed;
  Range reserved, device;                 ///< predicted
  std::optional<Range> neighbours;        ///< as of Estimate
  std::int64_t held_at_most = 0;          ///< of the bounds, in bytes
  double reserved_over = 1;               ///< as of Estimate
  std::string_view framework_name;        ///< in job files
  std::optional<AllocatorRegime> regime;  ///< of the bound; none where nothing is simulated
  std::vector<std::string> features;      ///< as of confirmed.h
  std::optional<LimitVerdict> at_limit;   ///< of runs that bounds were not fitted to
  std::array<std::optional<std::int64_t>, kPeerRules.size()> peers;  ///< bytes of one GPU
};

/// Over the records that have the figure.
struct ErrorSummary {
  std::int64_t count = 0;
  double mean_absolute = 0, mean_signed = 0;
  double largest = 0;  ///< signed: the error of the worst record
  std::string worst;   ///< its name
};

enum class AccuracyGroup : std::uint8_t { framework, model, precision };

struct GroupSummary {
  std::string name;  ///< "all" for the whole
  std::int64_t records = 0;
  std::array<ErrorSummary, kFigureCount> figures;
};

/// Steps whose host was timed between them, eager ones apart from compiled ones: as predicted, and
/// at that pace. The error of tokens/s is that of the step turned over: above 0 where the step took
/// longer.
struct HostSummary {
  std::string name;  ///< "single", "single, compiled"; those of several groups: "eager PyTorch"
  ErrorSummary predicted, timed;                ///< of steps
  ErrorSummary tokens_predicted, tokens_timed;  ///< of tokens/s
};

struct Accuracy {
  std::vector<Comparison> comparisons;
  GroupSummary all;
  std::vector<GroupSummary> groups;  ///< in the order in which they first occur
  std::vector<HostSummary> hosts;    ///< of the groups that have such steps, then of several
  std::array<ErrorSummary, kPeerRules.size()> peers;  ///< against the allocated peak
  /// shardplan on the records that the rule is for.
  std::array<ErrorSummary, kPeerRules.size()> ours_on_peers;
  std::vector<std::string> bound_records;  ///< that the bounds of reserved memory were fitted to
  std::vector<Diagnostic> bad;             ///< records that could not be read or estimated
};

/// (predicted - measured) / measured; nothing when either is missing or measured is 0.
std::optional<double> relative_error(std::optional<double> predicted,
                                     std::optional<double> measured);

/// The group of a plan by framework: "ddp", "deepspeed stage 2".
std::string framework_group(const Plan& plan);

/// Throws InputError for a job that cannot be estimated.
Comparison compare_with_record(const Record& record, const Calibration& calibration);

/// The errors of all of them together.
GroupSummary summary_of(const std::vector<const Comparison*>& comparisons);

Accuracy compare_with_records(const RecordList& records, AccuracyGroup by);

}  // namespace shardplan
