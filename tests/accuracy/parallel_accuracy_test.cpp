// Predictions of divided models against records of steps on two GPUs (data/measurements/parallel):
// transformers' tensor- and expert-parallel plans, DeepSpeed's AutoTP at every ZeRO stage.
#include <gtest/gtest.h>

#include <cmath>

#include "estimate/estimate.h"
#include "load/hardware.h"
#include "load/record.h"

namespace shardplan {
namespace {

const RecordList& records() {
  static const RecordList list =
      load_records({SHARDPLAN_SOURCE_DIR "/data/measurements/parallel"}, load_hardware_catalog());
  return list;
}

struct Errors {
  double sum = 0, largest = 0;
  std::string worst;
  void add(double error, const std::string& name) {
    sum += std::abs(error);
    if (std::abs(error) <= std::abs(largest)) return;
    largest = error;
    worst = name;
  }
};

TEST(ParallelAccuracy, HoldsThePeakOfEveryRecordWithinAPercent) {
  Errors errors;
  for (const Record& r : records().records) {
    const Estimate e = estimate(r.job.model, r.job.plan, Calibration{});
    const double measured = *r.measured[index_of(Figure::allocated_peak)];
    errors.add(100 * (static_cast<double>(e.allocated.point) / measured - 1), r.name);
  }
  const std::size_t count = records().records.size();
  ASSERT_GE(count, 30u);
  EXPECT_LE(errors.sum / static_cast<double>(count), 0.15) << "percent, mean";
  EXPECT_LE(std::abs(errors.largest), 1.0) << "percent, " << errors.worst;
}

TEST(ParallelAccuracy, RefusesWhatItCannotDivideYet) {
  EXPECT_EQ(records().bad.size(), 5u);
  for (const Diagnostic& d : records().bad)
    EXPECT_TRUE(d.key == "parallel.expert" || d.key == "framework.moe") << to_string(d);
}

}  // namespace
}  // namespace shardplan
