// Predictions of framework `megatron` against Megatron Core's own steps, one rank of a layout at a
// time (data/measurements/megatron): those that causes were sought on, and those of held_out/,
// which were predicted before they ran.
#include <gtest/gtest.h>

#include <cmath>

#include "estimate/estimate.h"
#include "load/hardware.h"
#include "load/record.h"

namespace shardplan {
namespace {

constexpr const char* kAll = SHARDPLAN_SOURCE_DIR "/data/measurements/megatron";
constexpr const char* kHeldOut = SHARDPLAN_SOURCE_DIR "/data/measurements/megatron/held_out";

struct Errors {
  double sum = 0, largest = 0;
  std::string worst;
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
    errors.sum += error;
    ++errors.count;
    if (error <= errors.largest) continue;
    errors.largest = error;
    errors.worst = r.name;
  }
  return errors;
}

TEST(MegatronAccuracy, HoldsThePeaksThatWerePredictedBeforeTheyWereMeasured) {
  const Errors e = errors_of_allocated(kHeldOut);
  ASSERT_EQ(e.count, 12u);
  EXPECT_LE(e.sum / static_cast<double>(e.count), 0.4) << "percent, mean";
  EXPECT_LE(e.largest, 1.1) << "percent, " << e.worst;
}

TEST(MegatronAccuracy, HoldsEveryPeakWithinAPercent) {
  const Errors e = errors_of_allocated(kAll);
  ASSERT_EQ(e.count, 41u);
  EXPECT_LE(e.sum / static_cast<double>(e.count), 0.4) << "percent, mean";
  EXPECT_LE(e.largest, 1.1) << "percent, " << e.worst;
}

}  // namespace
}  // namespace shardplan
