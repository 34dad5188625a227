// Which communicators a plan opens, what it sends over each, and what they take: the sums are
// written out from NCCL's allocations (docs/explanation/memory.md, "Communicators").
#include "parallel/communicators.h"
#include "base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimate/nccl_memory.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Of 24 channels, 32 set up: 3 allocations of 2 MiB each, and 2 of the communicator.
constexpr std::int64_t kOpen = (32 * 3 + 2) * 2 * kMiB;
constexpr std::int64_t kAlone = (64 * 3 + 2) * 2 * kMiB;
constexpr std::int64_t kRing = 24 * (2 + 10) * kMiB;
constexpr std::int64_t kSend = 32 * 2 * kMiB;
constexpr std::int64_t kReceive = 32 * 10 * kMiB;
constexpr std::int64_t kPeer = kSend + kReceive;
constexpr NcclOverhead kOverhead{1000, 100, 10, 24, 64, 32};

std::vector<std::string> names(const Plan& plan, std::int64_t rank = 0) {
  std::vector<std::string> all;
  for (const Communicator& c : communicators(plan, rank)) all.emplace_back(c.name);
  return all;
}

std::int64_t bytes(const Plan& plan, std::int64_t rank = 0) {
  return nccl_bytes(communicators(plan, rank), kOverhead);
}

Plan megatron(std::int64_t ranks) {
  return plan_of(FrameworkKind::megatron, "bf16-master", ranks);
}

TEST(Communicators, OfPyTorchAreTheWorlds) {
  EXPECT_THAT(names(plan_of(FrameworkKind::single, "bf16-pure", 1)), IsEmpty());
  for (const auto kind : {FrameworkKind::ddp, FrameworkKind::fsdp2, FrameworkKind::native})
    for (const std::int64_t ranks : {2, 4, 8}) {
      EXPECT_THAT(names(plan_of(kind, "bf16-pure", ranks)), ElementsAre("world"));
      EXPECT_EQ(bytes(plan_of(kind, "bf16-pure", ranks)), 1100 + kOpen + kRing);
    }
}

TEST(Communicators, OfTheEnginesExpertsAreTheWorldWhereTheySpanIt) {
  Plan plan = plan_of(FrameworkKind::native, "bf16-pure", 4);
  plan.parallel.expert = 2;
  EXPECT_THAT(names(plan), ElementsAre("world", "expert", "expert-data"));
  plan.parallel.expert = 4;
  EXPECT_THAT(names(plan), ElementsAre("world"));
}

TEST(Communicators, OfAMeshAreThoseThatTheWorldsIsNot) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 4);
  plan.framework.fsdp2.hybrid_shard_size = 2;
  EXPECT_THAT(names(plan), ElementsAre("world", "replica", "shard"));
  EXPECT_EQ(bytes(plan), 1100 + 3 * (kOpen + kRing));
  plan.framework.fsdp2.hybrid_shard_size = 4;
  EXPECT_THAT(names(plan), ElementsAre("world", "replica"));
  EXPECT_EQ(bytes(plan), 1100 + kOpen + kRing + kAlone);
}

TEST(Communicators, OfDeepSpeedAreTheWorldAndItsCloneOnOneGpuToo) {
  EXPECT_EQ(bytes(zero_plan(2, "bf16-master", 1)), 1000 + 2 * kAlone);
  EXPECT_EQ(bytes(zero_plan(2, "bf16-master", 4)), 1100 + 2 * (kOpen + kRing));
}

TEST(Communicators, OfQuantizedGradientsAreOpenedEvenWhereTheyAreNotUsed) {
  Plan plan = zero_plan(3, "bf16-master", 4);
  plan.framework.deepspeed.zero.quantized_gradients = true;
  EXPECT_EQ(bytes(plan), 1100 + 2 * (kOpen + kRing) + kOpen);
}

TEST(Communicators, OfAutoTpHaveTheWorldForADegreeThatSpansIt) {
  Plan plan = zero_plan(1, "bf16-master", 2);
  plan.parallel.tensor = 2;
  EXPECT_THAT(names(plan), ElementsAre("world", "data"));
  EXPECT_EQ(bytes(plan), 1100 + kOpen + kRing + kAlone);
  EXPECT_EQ(foreign_contexts(plan), 1);
  plan.cluster = cluster_of(4);
  EXPECT_THAT(names(plan), ElementsAre("world", "data", "tensor"));
  EXPECT_EQ(bytes(plan), 1100 + 3 * (kOpen + kRing));
}

TEST(Communicators, OfExpertsConnectEveryPeer) {
  Plan plan = zero_plan(2, "bf16-master", 4);
  plan.parallel.expert = 2;
  EXPECT_THAT(names(plan), ElementsAre("world", "clone of the world", "expert", "expert-data"));
  EXPECT_EQ(bytes(plan), 1110 + 3 * (kOpen + kRing) + kOpen + kPeer);
  plan.parallel.expert = 4;
  EXPECT_EQ(bytes(plan), 1110 + 2 * (kOpen + kRing) + kOpen + 3 * kPeer + kAlone);
}

TEST(Communicators, OfMegatronAreThoseThatAStepUses) {
  Plan plan = megatron(4);
  plan.parallel.tensor = 4;
  EXPECT_THAT(names(plan), ElementsAre("world", "tensor", "data", "optimizer instance"));
  EXPECT_EQ(bytes(plan), 1100 + 3 * (kOpen + kRing) + kAlone);
  plan.parallel.tensor = 2;
  EXPECT_EQ(bytes(plan), 1100 + 4 * (kOpen + kRing));
  plan.framework.megatron.distributed_optimizer = false;
  EXPECT_THAT(names(plan), ElementsAre("world", "tensor", "data", "model"));
}

TEST(Communicators, OfStagesConnectNeighbours) {
  Plan plan = megatron(4);
  plan.parallel.pipeline = 4;
  const std::int64_t first = 1110 + 2 * (kOpen + kRing) + kAlone + kOpen + kPeer;
  EXPECT_EQ(bytes(plan, 0), first);
  EXPECT_EQ(bytes(plan, 1), first + kPeer);
  EXPECT_EQ(bytes(plan, 3), first + kAlone);  // the loss is summed over one tensor-parallel rank
}

TEST(Communicators, OfInterleavedStagesAreOneForEachNeighbour) {
  Plan plan = megatron(4);
  plan.parallel.tensor = plan.parallel.pipeline = plan.parallel.virtual_pipeline = 2;
  EXPECT_EQ(bytes(plan), 1110 + 3 * (kOpen + kRing) + kAlone + 2 * kOpen + kSend + kReceive);
}

TEST(Communicators, OfARingOfKeysConnectBothNeighboursOnce) {
  Plan plan = megatron(8);
  plan.parallel.context = 8;
  const std::vector<Communicator> list = communicators(plan, 0);
  const Communicator& ring = list.back();
  EXPECT_EQ(ring.name, "context");
  EXPECT_EQ(communicator_bytes(ring, kOverhead), kOpen + kPeer);
}

TEST(Communicators, AcrossNodesHaveTwoChannelsForEachPeer) {
  const Communicator peers{"peers", {16, 2}, false, {15, 15}};
  const std::int64_t shared = 2 * 32 * 16 * 128 * 1024;
  EXPECT_EQ(communicator_bytes(peers, kOverhead), kOpen + 7 * 2 * (2 + 10) * kMiB + shared);
}

TEST(Communicators, AreBoundedByEverythingConnectedOverTheWorlds) {
  const Plan plan = plan_of(FrameworkKind::ddp, "bf16-pure", 4);
  EXPECT_EQ(nccl_bytes_at_most(communicators(plan, 0), kOverhead), bytes(plan) + 10 + 3 * kPeer);
}

TEST(Communicators, TakeNothingWhereNoCalibrationSaysHowManyChannelsThereAre) {
  EXPECT_EQ(nccl_bytes(communicators(zero_plan(2, "bf16-master", 4), 0), {}), 0);
}

}  // namespace
}  // namespace shardplan
