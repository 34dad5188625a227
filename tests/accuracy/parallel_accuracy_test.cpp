// Predictions of divided models against records of steps on two GPUs: transformers' tensor- and
// expert-parallel plans, DeepSpeed's AutoTP at every ZeRO stage and its AutoEP.
#include "peak_errors.h"

namespace shardplan::parallel_accuracy_test {
namespace {

const RecordList& records() {
  static const RecordList list =
      records_asked_for({"tensor_parallel", "deepspeed_parallel", "deepspeed_moe"});
  return list;
}

/// DeepSpeed's own layers, whose experts take a fixed number of rows, whoever is sent them.
bool has_slots(const Record& r) {
  return r.job.plan.framework.deepspeed.moe.has_value();
}

/// Each rank routes its own tokens, and how many reach a rank's experts is chance: a job says so by
/// parallel.expert_imbalance, and these do not.
bool is_routed(const Record& r) {
  return r.job.plan.framework.kind == FrameworkKind::deepspeed && r.job.plan.parallel.expert > 1 &&
         !has_slots(r);
}

PeakErrors errors_where(bool (*which)(const Record&)) {
  PeakErrors errors;
  for (const Record& r : records().records)
    if (which(r)) errors.add(r);
  return errors;
}

TEST(ParallelAccuracy, HoldsThePeakOfEveryRecordWithinAPercent) {
  expect_within(errors_where([](const Record& r) { return !is_routed(r) && !has_slots(r); }), 30,
                0.15, 1.0);
}

// The two ranks of the first of them peak 2.5 percent apart, the mean of both 0.13 percent above
// the prediction, which is for even routing.
TEST(ParallelAccuracy, HoldsRoutedExpertsAsNearAsTheirRanksAreToEachOther) {
  expect_within(errors_where(is_routed), 2, 1.5, 1.5);
}

TEST(ParallelAccuracy, HoldsDeepSpeedsOwnSparseLayers) {
  EXPECT_TRUE(records().bad.empty()) << to_string(records().bad.front());
  expect_within(errors_where(has_slots), 3, 3.0, 3.0);
}

}  // namespace
}  // namespace shardplan::parallel_accuracy_test
