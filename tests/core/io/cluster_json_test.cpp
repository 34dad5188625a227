// The cluster of a job as text or object, and the cluster files under configs/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "json/reader.h"
#include "load/cluster.h"
#include "load/hardware.h"
#include "support/error_of.h"

namespace shardplan::cluster_json_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const HardwareCatalog& catalog() {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  return kCatalog;
}

Cluster load(const std::string& text) {
  return load_cluster(parse_json(text, "job.json"), "job.json", "cluster", catalog());
}
std::string error_of(const std::string& text) {
  return error_text([&] { load(text); });
}

TEST(ClusterJson, ATextIsResolvedAndItsErrorsNameTheFile) {
  EXPECT_EQ(load(R"("2x8xH100")").world(), 16);
  EXPECT_THAT(error_of(R"("0xH100")"), HasSubstr("job.json: cluster: the count is zero"));
  EXPECT_THAT(error_of("4"), HasSubstr("job.json: cluster: found 4; expected a cluster such as"));
}

TEST(ClusterJson, AnObjectGivesEveryField) {
  const Cluster c = load(R"({
    "gpu": "A100-SXM4-80GB", "gpus_per_node": 8, "nodes": 4, "host_memory_bytes": 1099511627776,
    "nvme": {"bytes": 8e12, "read_bandwidth": 6.5e9, "write_bandwidth": 5e9},
    "interconnect": {"intra_node_bandwidth": 2.5e11, "inter_node_bandwidth": 1e10},
    "price_per_hour": 12.5, "spot_price_per_hour": 4, "label": "ours",
    "storage": {"write_bandwidth": 2e9}, "hours_between_failures": 900, "restart_seconds": 30})");
  EXPECT_EQ(c.label, "ours");
  EXPECT_EQ(c.gpu.name, "A100-SXM4-80GB");
  EXPECT_EQ(c.world(), 32);
  EXPECT_EQ(c.host_memory, Bytes(1099511627776));
  ASSERT_TRUE(c.nvme);
  EXPECT_EQ(c.nvme->capacity, Bytes(8'000'000'000'000));
  EXPECT_EQ(c.nvme->read_bandwidth, 6.5e9);
  EXPECT_EQ(c.nvme->write_bandwidth, 5e9);
  EXPECT_EQ(c.intra_node_bandwidth, 2.5e11);
  EXPECT_EQ(c.inter_node_bandwidth, 1e10);
  EXPECT_EQ(c.intra_node_link, "");
  EXPECT_EQ(c.interconnect_source, Source::measured);
  EXPECT_EQ(c.price_per_hour, 12.5);
  EXPECT_EQ(c.spot_price_per_hour, 4);
  ASSERT_TRUE(c.checkpoint_storage && c.failures);
  EXPECT_EQ(c.checkpoint_storage->write_bandwidth, 2e9);
  EXPECT_GT(c.checkpoint_storage->read_bandwidth, 0);
  EXPECT_EQ(c.failures->node_hours, 900);
  EXPECT_EQ(c.failures->restart_seconds, 30);
  EXPECT_EQ(c.failures->counted_on, "");
  EXPECT_THAT(c.notes, IsEmpty());
}

TEST(ClusterJson, AbsentFieldsAreDefaultsOrUnknown) {
  const Cluster c = load(R"({"gpu": "H200", "gpus_per_node": 2})");
  EXPECT_EQ(c.label, "2xH200-SXM5-141GB");
  EXPECT_EQ(c.nodes, 1);
  EXPECT_EQ(c.host_memory, std::nullopt);
  EXPECT_FALSE(c.nvme);
  EXPECT_EQ(c.intra_node_bandwidth, 450e9);
  EXPECT_EQ(load(R"({"gpu": "40GB"})").gpu.name, "40GB");
}

TEST(ClusterJson, AGpuMayBeGivenByItsFields) {
  const Cluster c = load(R"({"gpu": {"name": "X1", "memory_bytes": 50000000000,
    "usable_bytes": 49000000000, "memory_bandwidth": 2e12, "peak_flops": {"bf16": 4e14},
    "nvlink_bandwidth": 1e11}, "gpus_per_node": 4})");
  EXPECT_EQ(c.gpu.name, "X1");
  EXPECT_EQ(c.gpu.usable, Bytes(49'000'000'000));
  EXPECT_EQ(c.gpu.usable_source, Source::measured);
  EXPECT_EQ(c.gpu.peak[PeakRate::bf16], 4e14);
  EXPECT_EQ(c.gpu.peak[PeakRate::fp8], std::nullopt);
  EXPECT_EQ(c.intra_node_bandwidth, 1e11);
  const Cluster bare = load(R"({"gpu": {"memory_bytes": 50000000000}, "gpus_per_node": 2})");
  EXPECT_LT(bare.gpu.usable, bare.gpu.capacity);
  EXPECT_EQ(bare.gpu.usable_source, Source::assumed);
  EXPECT_EQ(bare.interconnect_source, Source::assumed);
  EXPECT_THAT(bare.notes, Contains(HasSubstr("PCIe gen 4")));
}

TEST(ClusterJson, LinksMayBeNamed) {
  const Cluster one = load(R"({"gpu": "A100-SXM4-80GB", "gpus_per_node": 8, "nodes": 2,
    "interconnect": "InfiniBand NDR 400"})");
  EXPECT_EQ(one.inter_node_bandwidth, 50e9);
  EXPECT_EQ(one.inter_node_link, "InfiniBand-NDR-400");
  EXPECT_EQ(one.intra_node_bandwidth, 300e9);  // the GPU's own
  const Cluster efa = load(R"({"gpu": "A100-SXM4-80GB", "gpus_per_node": 8, "nodes": 2,
    "interconnect": {"inter_node_bandwidth": "EFA-v1"}})");
  EXPECT_EQ(efa.inter_node_bandwidth, 50e9 / 8);  // a link of the node, shared
  const Cluster pcie = load(R"({"gpu": "A100-SXM4-80GB", "gpus_per_node": 8,
    "interconnect": "PCIe-gen4-x16"})");
  EXPECT_EQ(pcie.intra_node_bandwidth, 31.5e9);
}

TEST(ClusterJson, MistakesNameTheKeyAndTheNearestSpelling) {
  EXPECT_THAT(error_of(R"({"gpu": "H100", "gpu_per_node": 8})"),
              AllOf(HasSubstr("job.json: cluster.gpu_per_node: unknown key"),
                    HasSubstr("did you mean 'gpus_per_node'?")));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "nvme": {"bytes": 1, "read_bandwith": 2}})"),
              AllOf(HasSubstr("cluster.nvme.read_bandwith"), HasSubstr("'read_bandwidth'")));
  EXPECT_THAT(error_of(R"({"gpu": {"memory_bytes": 1000, "peak_flops": {"bf61": 1}}})"),
              AllOf(HasSubstr("cluster.gpu.peak_flops.bf61"), HasSubstr("'bf16'")));
  EXPECT_THAT(error_of(R"({"gpu": "A10O-40GB"})"),
              HasSubstr("job.json: cluster.gpu: unknown GPU or instance"));
  EXPECT_THAT(error_of(R"({"gpu": "A100-30GB"})"),
              HasSubstr("cluster.gpu: no A100 has 30GB of memory; expected 40GB or 80GB"));
  EXPECT_THAT(error_of(R"({"gpus_per_node": 8})"), HasSubstr("cluster.gpu: missing"));
  EXPECT_THAT(
      error_of(R"({"gpuu": "H100", "gpus_per_node": 8})"),
      AllOf(HasSubstr("job.json: cluster.gpuu: unknown key"), HasSubstr("did you mean 'gpu'?")));
  EXPECT_THAT(error_of(R"({"gpu": 4})"), HasSubstr("cluster.gpu: found 4"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "interconnect": "NVLnk4"})"),
              HasSubstr("did you mean 'NVLink4'?"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "interconnect": {"inter_node_bandwidth": "NVLink4"}})"),
              HasSubstr("NVLink4 is a link within nodes"));
}

TEST(ClusterJson, NumbersOutOfRangeAreRefused) {
  EXPECT_THAT(error_of(R"({"gpu": "H100", "gpus_per_node": 0})"),
              HasSubstr("cluster.gpus_per_node: found 0"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "nodes": -1})"), HasSubstr("cluster.nodes: found -1"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "nodes": 1000000, "gpus_per_node": 1000000})"),
              HasSubstr("too many"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "host_memory_bytes": 0})"), HasSubstr("at least 1"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "nvme": {}})"), HasSubstr("cluster.nvme.bytes"));
  EXPECT_THAT(error_of(R"({"gpu": {"name": "X"}})"), HasSubstr("cluster.gpu.memory_bytes"));
  EXPECT_THAT(error_of(R"({"gpu": {"memory_bytes": 10, "usable_bytes": 11}})"),
              HasSubstr("at most memory_bytes"));
  EXPECT_THAT(error_of(R"({"gpu": "H100", "interconnect": {"intra_node_bandwidth": 0}})"),
              HasSubstr("a positive number"));
}

TEST(ClusterConfigs, EachFileIsTheClusterItsNameSays) {
  struct Expected {
    std::string gpu;
    std::int64_t nodes, gpus_per_node;
    double intra_node, inter_node;
  };
  const std::map<std::string, Expected> expected = {
      {"4xa100-40gb-workstation.json", {"A100-SXM4-40GB", 1, 4, 300e9, 25e9}},
      {"8xh100.json", {"H100-SXM5-80GB", 1, 8, 450e9, 50e9}},
      {"2x8xh100.json", {"H100-SXM5-80GB", 2, 8, 450e9, 50e9}},
      {"8xa100-80gb.json", {"A100-SXM4-80GB", 1, 8, 300e9, 25e9}},
      {"4xrtx4090.json", {"RTX4090-24GB", 1, 4, 31.5e9, 12.5e9 / 4}},
      {"16xv100-32gb-dgx2.json", {"V100-SXM2-32GB", 1, 16, 150e9, 6.25e9}},
      {"8xh200.json", {"H200-SXM5-141GB", 1, 8, 450e9, 50e9}},
      {"64x8xh100.json", {"H100-SXM5-80GB", 64, 8, 450e9, 50e9}}};
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/clusters")) {
    const std::string name = entry.path().filename().string();
    ASSERT_TRUE(expected.contains(name)) << name << " has no row in this test";
    const Expected& want = expected.at(name);
    const std::string path = entry.path().string();
    const Cluster c = load_cluster(read_json_file(path), path, "", catalog());
    EXPECT_EQ(c.gpu.name, want.gpu) << name;
    EXPECT_EQ(c.nodes, want.nodes) << name;
    EXPECT_EQ(c.gpus_per_node, want.gpus_per_node) << name;
    EXPECT_DOUBLE_EQ(c.intra_node_bandwidth, want.intra_node) << name;
    EXPECT_DOUBLE_EQ(c.inter_node_bandwidth, want.inter_node) << name;
    EXPECT_TRUE(c.host_memory && c.nvme) << name;
    EXPECT_EQ(c.interconnect_source, Source::measured) << name;
    ++files;
  }
  EXPECT_EQ(files, expected.size());
}

TEST(ClusterJson, AShortTextCanBeGivenWithWhatElseIsKnown) {
  const HardwareCatalog catalog = load_hardware_catalog();
  const Json json = parse_json(
      R"({"name": "4xA100-40GB", "host_memory_bytes": 549755813888, "nvme": {"bytes": 1000}})",
      "c");
  const Cluster c = load_cluster(json, "c.json", "cluster", catalog);
  EXPECT_EQ(c.gpus_per_node, 4);
  EXPECT_EQ(c.host_memory->count(), 549755813888);
  EXPECT_EQ(c.nvme->capacity.count(), 1000);
  const Json wrong = parse_json(R"({"name": "4xA100-40GB", "host_memory": 1})", "c");
  EXPECT_THAT(error_text([&] { load_cluster(wrong, "c.json", "cluster", catalog); }),
              testing::HasSubstr("cluster.host_memory: unknown key"));
}

}  // namespace
}  // namespace shardplan::cluster_json_test
