// Predictions of framework `megatron` against Megatron Core's own steps, one rank of a layout at a
// time: those that causes were sought on, and those held out, which were predicted before they ran.
#include "peak_errors.h"

namespace shardplan {
namespace {

const std::vector<std::string> kLists{"megatron", "megatron_saved_activations"};

TEST(MegatronAccuracy, HoldsThePeaksThatWerePredictedBeforeTheyWereMeasured) {
  expect_within(peak_errors(records_asked_for(kLists, "held_out")), 17, 0.25, 1.1);
}

TEST(MegatronAccuracy, HoldsEveryPeakWithinAPercent) {
  expect_within(peak_errors(records_asked_for(kLists)), 46, 0.22, 1.1);
}

/// What its schedules hold of what stages receive (core/frameworks/megatron/received.h): without
/// it these were 0.53 % too low in the mean, and up to 0.84. With several chunks up to 0.6 are
/// left.
TEST(MegatronAccuracy, HoldsWhatStagesReceive) {
  RecordList list = records_asked_for(kLists);
  std::erase_if(list.records, [](const Record& r) {
    return r.job.plan.parallel.pipeline == 1 || r.job.plan.parallel.has_chunks();
  });
  expect_within(peak_errors(list), 9, 0.2, 0.45);
}

}  // namespace
}  // namespace shardplan
