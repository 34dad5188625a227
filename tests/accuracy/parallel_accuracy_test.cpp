// Predictions of divided models against records of steps on two GPUs (data/measurements/parallel):
// transformers' tensor- and expert-parallel plans, DeepSpeed's AutoTP at every ZeRO stage and its
// AutoEP.
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

/// Each rank routes its own tokens, and how many reach a rank's experts is chance: a job says so by
/// parallel.expert_imbalance, and these do not.
bool is_routed(const Record& r) {
  return r.job.plan.framework.kind == FrameworkKind::deepspeed && r.job.plan.parallel.expert > 1;
}

double peak_error(const Record& r) {
  const Estimate e = estimate(r.job.model, r.job.plan, Calibration{});
  const double measured = *r.measured[index_of(Figure::allocated_peak)];
  return 100 * (static_cast<double>(e.allocated.point) / measured - 1);
}

TEST(ParallelAccuracy, HoldsThePeakOfEveryRecordWithinAPercent) {
  Errors errors;
  std::size_t count = 0;
  for (const Record& r : records().records) {
    if (is_routed(r)) continue;
    errors.add(peak_error(r), r.name);
    ++count;
  }
  ASSERT_GE(count, 30u);
  EXPECT_LE(errors.sum / static_cast<double>(count), 0.15) << "percent, mean";
  EXPECT_LE(std::abs(errors.largest), 1.0) << "percent, " << errors.worst;
}

// The two ranks of the first of them peak 2.5 percent apart, the mean of both 0.13 percent above
// the prediction, which is for even routing.
TEST(ParallelAccuracy, HoldsRoutedExpertsAsNearAsTheirRanksAreToEachOther) {
  Errors errors;
  std::size_t count = 0;
  for (const Record& r : records().records) {
    if (!is_routed(r)) continue;
    errors.add(peak_error(r), r.name);
    ++count;
  }
  ASSERT_EQ(count, 2u);
  EXPECT_LE(std::abs(errors.largest), 1.5) << "percent, " << errors.worst;
}

TEST(ParallelAccuracy, RefusesWhatItCannotDivideYet) {
  EXPECT_EQ(records().bad.size(), 3u);
  for (const Diagnostic& d : records().bad) EXPECT_EQ(d.key, "framework.moe") << to_string(d);
}

}  // namespace
}  // namespace shardplan
