// Predictions of framework `megatron` against Megatron Core's own steps, one rank of a layout at a
// time: those that causes were sought on, and those held out, which were predicted before they ran.
#include "peak_errors.h"

namespace shardplan {
namespace {

const std::vector<std::string> kLists{"megatron", "megatron_saved_activations"};

TEST(MegatronAccuracy, HoldsThePeaksThatWerePredictedBeforeTheyWereMeasured) {
  expect_within(peak_errors(records_asked_for(kLists, "held_out")), 17, 0.4, 1.1);
}

TEST(MegatronAccuracy, HoldsEveryPeakWithinAPercent) {
  expect_within(peak_errors(records_asked_for(kLists)), 46, 0.4, 1.1);
}

}  // namespace
}  // namespace shardplan
