// Predictions of one rank of many against that rank in a fake world (measure/fake_world.py):
// DeepSpeed and FSDP2 on 8 to 64 ranks, and generation under tensor-parallel plans.
#include "peak_errors.h"

namespace shardplan {
namespace {

TEST(FakeWorld, HoldsDeepSpeedAndFsdp2OnEightToSixtyFourRanks) {
  expect_within(peak_errors(records_asked_for({"fake_world"})), 10, 0.4, 1.1);
}

TEST(FakeWorld, HoldsGenerationOverTwoToEightRanks) {
  expect_within(peak_errors(records_asked_for({"inference_divided"})), 7, 0.8, 4.0);
}

}  // namespace
}  // namespace shardplan
