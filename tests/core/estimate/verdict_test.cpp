#include "estimate/verdict.h"

#include <gtest/gtest.h>

#include "estimate/traffic.h"

namespace shardplan {
namespace {

Cluster cluster_with(std::int64_t usable) {
  Cluster cluster;
  cluster.gpu.usable = Bytes(usable);
  cluster.gpus_per_node = 2;
  cluster.nodes = 2;
  return cluster;
}

TEST(Verdict, FitsWithItsBoundAndIsTightWithoutIt) {
  const Cluster cluster = cluster_with(100);
  EXPECT_EQ(verdict_of({90, 100}, {}, cluster).gpu.fit, Fit::fits);
  EXPECT_EQ(verdict_of({90, 101}, {}, cluster).gpu.fit, Fit::tight);
  EXPECT_EQ(verdict_of({101, 110, 99}, {}, cluster).gpu.fit, Fit::tight);
  EXPECT_FALSE(probably_fits(verdict_of({101, 110, 99}, {}, cluster)));
  const Verdict over = verdict_of({101, 110}, {}, cluster);
  EXPECT_EQ(over.gpu.fit, Fit::does_not_fit);
  EXPECT_EQ(over.headroom_bytes, -1);
  EXPECT_EQ(over.limited_by, "gpu");
  EXPECT_FALSE(over.fits);
}

TEST(Verdict, LeavesTheSystemAShareOfTheHost) {
  Cluster cluster = cluster_with(100);
  cluster.host_memory = Bytes(1000);
  EXPECT_EQ(verdict_of({}, {900, 50, 0}, cluster).host.fit, Fit::fits);
  const Verdict over = verdict_of({}, {900, 51, 0}, cluster);
  EXPECT_EQ(over.host.fit, Fit::does_not_fit);
  EXPECT_EQ(over.host.available, 1000);
  EXPECT_EQ(over.limited_by, "host");
}

TEST(Verdict, IsUnknownOnlyWhereSomethingIsNeeded) {
  const Cluster cluster = cluster_with(100);
  const Verdict none = verdict_of({}, {}, cluster);
  EXPECT_EQ(none.host.fit, Fit::fits);
  EXPECT_EQ(none.nvme.fit, Fit::fits);
  const Verdict some = verdict_of({}, {1, 0, 1}, cluster);
  EXPECT_EQ(some.host.fit, Fit::unknown);
  EXPECT_EQ(some.nvme.fit, Fit::unknown);
  EXPECT_TRUE(some.fits);  // nothing says otherwise
}

TEST(Traffic, AddsUpWhatIsSentForOnePurposeOverOneLink) {
  Program program;
  ProgramBuilder b(program);
  b.begin_repeat(3);
  b.collective(Collective::all_reduce, 1000, "gradients", 2);
  b.end_repeat();
  b.collective(Collective::all_reduce, 500, "gradients");
  b.copy(LinkKind::host, true, 700, "gradients");
  const std::vector<TrafficLine> traffic = traffic_of(program, cluster_with(100));
  ASSERT_EQ(traffic.size(), 2U);
  EXPECT_EQ(traffic[0].link, LinkKind::gpu);
  EXPECT_EQ(traffic[0].payload_bytes, 3500);
  EXPECT_EQ(traffic[0].count, 7);
  EXPECT_EQ(traffic[0].bytes_per_step, 5250);  // 2·(4-1)/4 of it, on four ranks
  EXPECT_GT(traffic[0].bytes_between_nodes, 0);
  EXPECT_EQ(traffic[1].link, LinkKind::host);
  EXPECT_EQ(traffic[1].bytes_per_step, 700);
  EXPECT_EQ(traffic[1].bytes_between_nodes, 0);
}

}  // namespace
}  // namespace shardplan
