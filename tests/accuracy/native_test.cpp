// Our own engine's runs on GPUs against their prediction: none of these records was in a fit of
// times, and half of them in none at all.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "asked_records.h"
#include "estimate/estimate.h"
#include "load/calibration.h"

namespace shardplan {
namespace {

constexpr std::size_t kRecords = 62;

RecordList native_records() {
  return records_asked_for({"native_1gpu", "native_2gpu"});
}

double error_of(double predicted, double measured) {
  return std::abs(predicted / measured - 1);
}

TEST(NativeRuns, allocate_what_is_predicted_to_the_byte) {
  const RecordList list = native_records();
  ASSERT_TRUE(list.bad.empty());
  ASSERT_GE(list.records.size(), kRecords);
  for (const Record& r : list.records) {
    const Estimate e = estimate(r.job.model, r.job.plan, load_calibration(), ReservedMemory::ratio);
    EXPECT_EQ(static_cast<double>(e.allocated.point), r.measured[index_of(Figure::allocated_peak)])
        << r.name;
  }
}

TEST(NativeRuns, take_of_the_whole_device_what_is_predicted_where_nothing_was_fitted) {
  std::set<std::string> fitted;
  for (const Json& name : built_in_calibration().at("native").at("records"))
    fitted.insert(name.get<std::string>());
  std::size_t held_out = 0;
  for (const Record& r : native_records().records) {
    if (fitted.contains(r.name)) continue;
    const Estimate e = estimate(r.job.model, r.job.plan, load_calibration(), ReservedMemory::ratio);
    EXPECT_LE(error_of(static_cast<double>(e.device.point), *r.measured[index_of(Figure::device)]),
              0.001)
        << r.name;
    ++held_out;
  }
  EXPECT_GE(held_out, kRecords / 2);
}

TEST(NativeRuns, take_the_time_that_is_predicted) {
  double sum = 0;
  const RecordList list = native_records();
  for (const Record& r : list.records) {
    const Estimate e = estimate(r.job.model, r.job.plan, load_calibration(), ReservedMemory::ratio);
    sum += error_of(e.time.step_seconds, *r.measured[index_of(Figure::step_seconds)]);
  }
  const double mean = sum / static_cast<double>(list.records.size());
  RecordProperty("mean_error", std::to_string(mean));
  EXPECT_LE(mean, 0.07);
}

}  // namespace
}  // namespace shardplan
