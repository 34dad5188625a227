// Runs of our own engine over two GPUs and one, of kinds whose times no constant was fitted to:
// tensor, pipeline, expert and context degrees, states on the host, adapters, experts without a
// capacity. What a product takes the host was chosen with other runs in view (native_settled).
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "load/calibration.h"
#include "peak_errors.h"

namespace shardplan::native_foreseen_test {
namespace {

constexpr int kRuns = 12;

TEST(NativeForeseen, AllocateWhatWasPredictedToTheByte) {
  expect_to_the_byte("native_foreseen", kRuns);
}

TEST(NativeForeseen, TakeTheTimeThatIsPredicted) {
  double sum = 0;
  int runs = 0;
  for (const Record& r : records_asked_for({"native_foreseen"}).records) {
    const Estimate e = estimate_job(r.job, load_calibration());
    const double measured = *r.measured[index_of(Figure::step_seconds)];
    const double error = 100 * (e.time.step_seconds / measured - 1);
    sum += std::abs(error);
    ++runs;
    // Parameters come from the host beside backward passes since they do so in the prediction too:
    // 7 instead of 15 % over nine runs, this one 16 too fast (docs/evidence/engine.md).
    const bool all_on_host = r.name.find("-offload-all-") != std::string::npos;
    EXPECT_GE(error, all_on_host ? -16.3 : -10.9) << r.name;
  }
  ASSERT_EQ(runs, kRuns);
  EXPECT_LE(sum / kRuns, 5.2);
}

/// 64 and 32 experts as random weights route: the job says how many had no rows, as its record
/// does.
TEST(NativeIdleExperts, TakeTheTimeOfThoseThatWork) {
  expect_to_the_byte("native_idle_experts", 5);
  double sum = 0;
  for (const Record& r : records_asked_for({"native_idle_experts"}).records) {
    const Estimate e = estimate_job(r.job, load_calibration());
    const double error =
        100 * (e.time.step_seconds / *r.measured[index_of(Figure::step_seconds)] - 1);
    EXPECT_GT(r.job.plan.framework.native.idle_experts, 0) << r.name;
    EXPECT_GE(error, -12.2) << r.name;
    sum += std::abs(error);
  }
  EXPECT_LE(sum / 5, 8.6);
}

}  // namespace
}  // namespace shardplan::native_foreseen_test
