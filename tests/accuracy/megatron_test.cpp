// Predictions of framework `megatron` against Megatron Core's own steps, one rank of a layout at a
// time (data/measurements/megatron): those that causes were sought on, and those of held_out/,
// which were predicted before they ran.
#include "peak_errors.h"

namespace shardplan {
namespace {

TEST(MegatronAccuracy, HoldsThePeaksThatWerePredictedBeforeTheyWereMeasured) {
  expect_within(peak_errors("megatron/held_out"), 17, 0.4, 1.1);
}

TEST(MegatronAccuracy, HoldsEveryPeakWithinAPercent) {
  expect_within(peak_errors("megatron"), 46, 0.4, 1.1);
}

}  // namespace
}  // namespace shardplan
