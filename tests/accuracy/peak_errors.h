// How far predicted peaks are from those of records, in percent.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "asked_records.h"
#include "questions/estimate_job.h"

namespace shardplan {

struct PeakErrors {
  double sum = 0, largest = 0;  ///< absolute
  std::string worst;            ///< whose is the largest
  std::size_t count = 0;

  double mean() const { return sum / static_cast<double>(count); }

  void add(const Record& r) {
    const Estimate e = estimate_job(r.job, Calibration{});
    const double measured = *r.measured[index_of(Figure::allocated_peak)];
    const double error = std::abs(100 * (static_cast<double>(e.allocated.point) / measured - 1));
    sum += error;
    ++count;
    if (error <= largest) return;
    largest = error;
    worst = r.name;
  }
};

inline PeakErrors peak_errors(const RecordList& list) {
  EXPECT_TRUE(list.bad.empty()) << to_string(list.bad.front());
  PeakErrors errors;
  for (const Record& r : list.records) errors.add(r);
  return errors;
}

inline void expect_within(const PeakErrors& errors, std::size_t count, double mean,
                          double largest) {
  ASSERT_EQ(errors.count, count);
  EXPECT_LE(errors.mean(), mean) << "percent";
  EXPECT_LE(errors.largest, largest) << "percent, " << errors.worst;
}

/// All of a case list's records allocated what was predicted.
inline void expect_to_the_byte(const std::string& list, std::size_t records) {
  expect_within(peak_errors(records_asked_for({list})), records, 0, 0);
}

}  // namespace shardplan
