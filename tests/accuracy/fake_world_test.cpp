// Predictions of one rank of many against that rank in a fake world
// (tests/accuracy/measure/fake_world.py): DeepSpeed and FSDP2 on 8 to 64 ranks, and generation
// under tensor-parallel plans.
#include <gtest/gtest.h>

#include <cmath>

#include "estimate/estimate.h"
#include "load/hardware.h"
#include "load/record.h"

namespace shardplan {
namespace {

constexpr const char* kManyRanks = SHARDPLAN_SOURCE_DIR "/data/measurements/many_ranks";
constexpr const char* kGeneration = SHARDPLAN_SOURCE_DIR "/data/measurements/inference_divided";

struct Errors {
  double mean = 0, largest = 0;
  std::size_t count = 0;
};

Errors errors_of_allocated(const std::string& folder) {
  const RecordList list = load_records({folder}, load_hardware_catalog());
  EXPECT_TRUE(list.bad.empty()) << to_string(list.bad.front());
  Errors errors;
  for (const Record& r : list.records) {
    const Estimate e = estimate(r.job.model, r.job.plan, Calibration{});
    const double measured = *r.measured[index_of(Figure::allocated_peak)];
    const double error = std::abs(100 * (static_cast<double>(e.allocated.point) / measured - 1));
    errors.mean += error / static_cast<double>(list.records.size());
    errors.largest = std::max(errors.largest, error);
    ++errors.count;
  }
  return errors;
}

TEST(FakeWorld, HoldsDeepSpeedAndFsdp2OnEightToSixtyFourRanks) {
  const Errors e = errors_of_allocated(kManyRanks);
  ASSERT_EQ(e.count, 10u);
  EXPECT_LE(e.mean, 0.4) << "percent";
  EXPECT_LE(e.largest, 1.1) << "percent";
}

TEST(FakeWorld, HoldsGenerationOverTwoToEightRanks) {
  const Errors e = errors_of_allocated(kGeneration);
  ASSERT_EQ(e.count, 7u);
  EXPECT_LE(e.mean, 0.8) << "percent";
  EXPECT_LE(e.largest, 4.0) << "percent";
}

}  // namespace
}  // namespace shardplan
