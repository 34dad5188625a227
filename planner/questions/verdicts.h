// Verdicts about measured runs on GPUs of which a drawn share of what they took is free.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/calibration.h"
#include "estimate/verdict.h"
#include "load/record.h"

namespace shardplan {

struct Comparison;

/// What a drawn limit leaves a run: from 0 on more than it took of its GPU at its peak, with which
/// it surely runs; below 0 less than its live tensors and what its process has beside the
/// allocator, with which it surely dies. With what is between it may run where the allocator gives
/// back what it cached, which nobody has tried.
inline constexpr std::array<double, 7> kLimitOffsets{-0.10, -0.05, -0.02, 0, 0.02, 0.05, 0.10};

/// Drawn by the record's name, so that no limit can be chosen.
double limit_offset(std::string_view name);

struct LimitVerdict {
  double offset = 0;
  Fit fit = Fit::unknown;
  bool runs() const { return offset >= 0; }
  bool wrongly_fits() const { return fit == Fit::fits && !runs(); }
  bool wrongly_refused() const { return fit == Fit::does_not_fit && runs(); }
};

/// The verdict on the record's job at its drawn limit; nothing where what that is of was not
/// measured, or, below 0, where the driver moves states that have no room. `device` and `reserved`:
/// as predicted; where only the allocator's memory was measured, what is predicted beside it is
/// taken as it is.
std::optional<LimitVerdict> verdict_at_limit(const Record& record, const Range& device,
                                             const Range& reserved, const Calibration& calibration);

struct VerdictCount {
  std::string name;  ///< of a framework; "all"
  std::int64_t runs = 0;
  std::int64_t fits = 0, wrongly_fit = 0;
  std::int64_t tight = 0;
  std::int64_t refused = 0, wrongly_refused = 0;
  std::vector<std::string> wrong;  ///< names of records
};

/// By framework, in the order in which they first occur; "all" is the last.
std::vector<VerdictCount> verdict_counts(const std::vector<Comparison>& comparisons);

}  // namespace shardplan
