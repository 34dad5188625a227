// Cluster names to clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "hardware/catalog.h"
#include "hardware/gpu_names.h"
#include "hardware/interconnect.h"
#include "hardware/resolve.h"
#include "load/hardware.h"
#include "support/error_of.h"

namespace shardplan {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const HardwareCatalog& catalog() {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  return kCatalog;
}

Cluster resolve(std::string_view text) {
  return resolve_cluster(text, catalog());
}
std::string gpu_of(std::string_view text) {
  return resolve(text).gpu.name;
}
std::string error_of(std::string_view text) {
  return error_text([&] { resolve(text); });
}

TEST(ClusterName, CountsAreNodesAndGpusOfANode) {
  const Cluster four = resolve("4xA100-40GB");
  EXPECT_EQ(four.nodes, 1);
  EXPECT_EQ(four.gpus_per_node, 4);
  EXPECT_EQ(four.label, "4xA100-40GB");
  const Cluster two_nodes = resolve("2x8xH100");
  EXPECT_EQ(two_nodes.nodes, 2);
  EXPECT_EQ(two_nodes.gpus_per_node, 8);
  EXPECT_EQ(two_nodes.world(), 16);
  EXPECT_EQ(resolve("H200").world(), 1);
}

TEST(ClusterName, NamesMatchWithOrWithoutFormAndMemory) {
  EXPECT_EQ(gpu_of("4xA100-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4xA100-SXM4-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4xA100-SXM-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4xA100-40GB-SXM"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4xA100-PCIe-40GB"), "A100-PCIe-40GB");
  EXPECT_EQ(gpu_of("4xA100 80GB PCIe"), "A100-PCIe-80GB");
  EXPECT_EQ(gpu_of("4xA100-80G"), "A100-SXM4-80GB");
  EXPECT_EQ(gpu_of("4xA100-80"), "A100-SXM4-80GB");
  EXPECT_EQ(gpu_of("8xV100-32"), "V100-SXM2-32GB");
  EXPECT_EQ(gpu_of("8xH200"), "H200-SXM5-141GB");
  EXPECT_EQ(gpu_of("8xH200-SXM-141GB"), "H200-SXM5-141GB");
  EXPECT_EQ(gpu_of("4xRTX4090"), "RTX4090-24GB");
  EXPECT_EQ(gpu_of("4xRTX4090-24GB"), "RTX4090-24GB");
  EXPECT_EQ(gpu_of("4x4090"), "RTX4090-24GB");
  EXPECT_EQ(gpu_of("4xL40S-48GB"), "L40S-48GB");
  EXPECT_EQ(gpu_of("4xL40"), "L40-48GB");
  EXPECT_EQ(gpu_of("4xL4"), "L4-24GB");
  EXPECT_EQ(gpu_of("4xL4-24GB"), "L4-24GB");
  EXPECT_EQ(gpu_of("4xA10"), "A10-24GB");
  EXPECT_EQ(gpu_of("4xA10G"), "A10G-24GB");
  EXPECT_EQ(gpu_of("2xH100-NVL"), "H100-NVL-94GB");
  EXPECT_EQ(gpu_of("2xH100-94GB"), "H100-NVL-94GB");
  EXPECT_EQ(gpu_of("8xB200-192GB"), "B200-SXM6-180GB");
  EXPECT_EQ(gpu_of("4xA6000"), "RTXA6000-48GB");
  EXPECT_EQ(gpu_of("2xRTX 6000 Ada"), "RTX6000Ada-48GB");
  EXPECT_EQ(gpu_of("8xH100-96GB"), "H100-SXM5-96GB");
  EXPECT_EQ(gpu_of("8xH100-95GB"), "H100-SXM5-96GB");
  EXPECT_EQ(gpu_of("8xH20-3e"), "H20-SXM5-141GB");
  EXPECT_EQ(gpu_of("8xH20-141GB"), "H20-SXM5-141GB");
  EXPECT_EQ(gpu_of("8xH800"), "H800-SXM5-80GB");
  EXPECT_EQ(gpu_of("8xA800-PCIe"), "A800-PCIe-80GB");
  EXPECT_EQ(gpu_of("1xNVIDIA GeForce RTX 4070 Ti SUPER"), "RTX4070TiSUPER-16GB");
  EXPECT_EQ(gpu_of("1x4070 Ti"), "RTX4070Ti-12GB");
  EXPECT_EQ(gpu_of("1x3080-10GB"), "RTX3080-10GB");
  EXPECT_EQ(gpu_of("1xRTX 5060 Ti 8GB"), "RTX5060Ti-8GB");
  EXPECT_EQ(gpu_of("4xRTX PRO 6000 Server"), "RTXPRO6000-Server-96GB");
  EXPECT_EQ(gpu_of("8xMI350X"), "MI350X-288GB");
}

TEST(ClusterName, CaseSpacesHyphensAndTheMakerDoNotCount) {
  EXPECT_EQ(gpu_of(" 4 x a100 40gb "), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4Xa10040GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4x-A100--40-GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4-x-A100_40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4\u00d7A100-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("4*A100-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(gpu_of("8xNVIDIA H100 80GB HBM3"), "H100-SXM5-80GB");
  EXPECT_EQ(gpu_of("1xNVIDIA GeForce RTX 4090"), "RTX4090-24GB");
  EXPECT_EQ(gpu_of("1xTesla V100-SXM2-16GB"), "V100-SXM2-16GB");
  EXPECT_EQ(gpu_of("8xAMD Instinct MI300X"), "MI300X-192GB");
}

TEST(ClusterName, EveryGpuResolvesByItsOwnNameAndNothingElse) {
  for (const CatalogGpu& row : catalog().gpus) {
    const Cluster cluster = resolve("4x" + row.gpu.name);
    EXPECT_EQ(cluster.gpu.name, row.gpu.name);
    EXPECT_EQ(cluster.gpus_per_node, 4) << row.gpu.name;
    EXPECT_THAT(choose_gpu(row.gpu.name, catalog()).note, IsEmpty()) << row.gpu.name;
    EXPECT_GT(cluster.intra_node_bandwidth, 0) << row.gpu.name;
    EXPECT_GT(cluster.inter_node_bandwidth, 0) << row.gpu.name;
  }
}

TEST(ClusterName, AnAmbiguousNameTakesTheLargestSxmPartAndSaysSo) {
  const Cluster a100 = resolve("4xA100");
  EXPECT_EQ(a100.gpu.name, "A100-SXM4-80GB");
  EXPECT_THAT(a100.notes,
              Contains(AllOf(HasSubstr("taken as A100-SXM4-80GB"), HasSubstr("A100-PCIe-40GB"))));
  EXPECT_THAT(resolve("4xA100-40GB").notes, Contains(HasSubstr("could also be A100-PCIe-40GB")));
  EXPECT_EQ(gpu_of("8xH100"), "H100-SXM5-80GB");  // not the NVL, though it has more memory
  EXPECT_EQ(gpu_of("8xV100"), "V100-SXM2-32GB");
  EXPECT_EQ(gpu_of("8xA100-PCIe"), "A100-PCIe-80GB");
  EXPECT_EQ(gpu_of("1xGH200"), "GH200-96GB");  // the 144 GB part is rare
  EXPECT_THAT(resolve("8xH200").notes, IsEmpty());
  EXPECT_THAT(resolve("8xH20").notes, Contains(AllOf(HasSubstr("taken as H20-SXM5-96GB"),
                                                     HasSubstr("could also be H20-SXM5-141GB"))));
  EXPECT_THAT(resolve("1xRTX 4060 Ti").notes,
              Contains(AllOf(HasSubstr("taken as RTX4060Ti-16GB"), HasSubstr("RTX4060Ti-8GB"))));
}

TEST(ClusterName, AMemoryThatNoSuchGpuHasNamesThoseThatExist) {
  EXPECT_EQ(error_of("4xA100-30GB"), "cluster: no A100 has 30GB of memory; expected 40GB or 80GB");
  EXPECT_EQ(error_of("4xH100-90GB"),
            "cluster: no H100 has 90GB of memory; expected 80GB or 94GB or 96GB");
  EXPECT_THAT(error_of("4xL40-24GB"), HasSubstr("no L40 has 24GB of memory; expected 48GB"));
  EXPECT_THAT(error_of("4xA100-SXM4-64GB"), HasSubstr("expected 40GB or 80GB"));
  EXPECT_THAT(error_of("4xRTX4090-48GB"), HasSubstr("expected 24GB"));
  EXPECT_THAT(error_of("4xMI250X-128GB"), HasSubstr("expected 64GB"));
}

TEST(ClusterName, UnknownNamesGetTheNearestSpelling) {
  EXPECT_THAT(error_of("4xA10O-40GB"), HasSubstr("did you mean '4xA100-40GB'?"));
  EXPECT_THAT(error_of("8xH1O0"), HasSubstr("did you mean '8xH100'?"));
  EXPECT_THAT(error_of("2x8xH2000"), HasSubstr("did you mean '2x8xH200'?"));
  EXPECT_THAT(error_of("p4d.24xlrage"), HasSubstr("did you mean 'p4d.24xlarge'?"));
  EXPECT_THAT(error_of("GTX4090"), HasSubstr("did you mean 'RTX4090'?"));
  EXPECT_THAT(error_of("4xfoobarbaz"),
              AllOf(HasSubstr("unknown GPU or instance 'foobarbaz'"), HasSubstr("4xA100-40GB")));
}

TEST(ClusterName, AMemorySizeBehindADashLacksItsGpu) {
  EXPECT_THAT(error_of("8x-40GB"), AllOf(HasSubstr("no GPU before it"), HasSubstr("'8x40GB'?")));
  EXPECT_THAT(error_of("2x8x-80GB"), HasSubstr("did you mean '2x8x80GB'?"));
  EXPECT_THAT(error_of("-40GB"), HasSubstr("did you mean '40GB'?"));
  EXPECT_EQ(gpu_of("8x-4090"), "RTX4090-24GB");
  EXPECT_EQ(gpu_of("8x-A100-40GB"), "A100-SXM4-40GB");
}

TEST(ClusterName, BadCountsAreErrors) {
  EXPECT_THAT(error_of("0xA100"), HasSubstr("cluster: the count is zero; expected a count from 1"));
  EXPECT_THAT(error_of("2x0xA100"), HasSubstr("zero"));
  EXPECT_THAT(error_of("-4xA100"), HasSubstr("the count -4 is negative"));
  EXPECT_THAT(error_of("2x-8xH100"), HasSubstr("the count -8 is negative"));
  EXPECT_THAT(error_of("4.5xA100"), HasSubstr("'4.5' is not a whole number"));
  EXPECT_THAT(error_of("4e3xA100"), HasSubstr("'4e3' is not a whole number"));
  EXPECT_THAT(error_of("fourxA100"), HasSubstr("'four' is not a count"));
  EXPECT_THAT(error_of("99999999999999999999xA100"), HasSubstr("is too large"));
  EXPECT_THAT(error_of("1000001xA100"), HasSubstr("is too large"));
  EXPECT_THAT(error_of("1000000x1000000xA100"), HasSubstr("are too many"));
  EXPECT_THAT(error_of("999999xp4d.24xlarge"), HasSubstr("are too many"));
  EXPECT_THAT(error_of("2x2x2xA100"), HasSubstr("has 3 counts"));
  EXPECT_THAT(error_of("A100x4"), HasSubstr("did you mean '4xA100-SXM4-80GB'?"));
  EXPECT_THAT(error_of("A100:4"), HasSubstr("did you mean '4xA100-SXM4-80GB'?"));
  EXPECT_THAT(error_of("3090x2"), HasSubstr("did you mean '2xRTX3090-24GB'?"));
}

TEST(ClusterName, ACountIsReportedBeforeTheName) {
  EXPECT_THAT(error_of("0xnosuchgpu"), HasSubstr("zero"));
}

TEST(ClusterName, EmptyAndEndlessTextsAreErrors) {
  EXPECT_THAT(error_of(""), HasSubstr("the name is empty"));
  EXPECT_THAT(error_of("   "), HasSubstr("the name is empty"));
  EXPECT_THAT(error_of("4x"), HasSubstr("names no GPU"));
  EXPECT_THAT(error_of("-"), HasSubstr("cluster: "));
  EXPECT_THAT(error_of("x"), HasSubstr("cluster: "));
  EXPECT_THAT(error_of("nvidia"), HasSubstr("cluster: "));
  EXPECT_THAT(error_of(std::string(100'000, '9')), HasSubstr("a name of 100000 characters"));
}

TEST(GenericGpu, IsAMemorySizeWithEverythingElseAssumed) {
  const Cluster cluster = resolve("4x40GB");
  EXPECT_EQ(cluster.gpus_per_node, 4);
  EXPECT_EQ(cluster.gpu.name, "40GB");
  EXPECT_EQ(cluster.gpu.capacity, Bytes(40) * (std::int64_t{1} << 30));
  EXPECT_LT(cluster.gpu.usable, cluster.gpu.capacity);
  EXPECT_GT(cluster.gpu.usable.gib(), 39.0);
  EXPECT_EQ(cluster.gpu.usable_source, Source::assumed);
  EXPECT_EQ(cluster.gpu.nvlink_bandwidth, std::nullopt);
  EXPECT_EQ(cluster.gpu.peak[PeakRate::bf16], 312e12);
  EXPECT_EQ(cluster.interconnect_source, Source::assumed);
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("are assumed to be usable")));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("assumed to be those of A100")));
  EXPECT_EQ(resolve("2x8x80 GiB").gpu.name, "80GB");
  EXPECT_EQ(resolve("4x24g").gpu.peak[PeakRate::fp16], 70e12);  // the slowest of 24 GB: A10G
}

TEST(GenericGpu, NeedsAUnitAndASensibleSize) {
  EXPECT_THAT(error_of("4x40"), AllOf(HasSubstr("'40' is neither a GPU nor a memory size"),
                                      HasSubstr("did you mean '4x40GB'?")));
  EXPECT_THAT(error_of("40"), HasSubstr("did you mean '40GB'?"));
  EXPECT_THAT(error_of("8"), AllOf(HasSubstr("'8' is a count alone"), HasSubstr("as in 8xH100")));
  EXPECT_THAT(error_of("2x8x80"), HasSubstr("did you mean '2x8x80GB'?"));
  EXPECT_THAT(error_of("4x0GB"), HasSubstr("no GPU has 0gb"));
  EXPECT_THAT(error_of("4x99999999999999999999GB"), HasSubstr("from 1GB to 10000GB"));
  EXPECT_THAT(error_of("4x22.5GB"), HasSubstr("not a whole number of GB"));
}

TEST(GpuName, UnknownOnesAreToldWhatElseToWrite) {
  EXPECT_THAT(error_of("8xH999"), AllOf(HasSubstr("H100"), HasSubstr("H200"),
                                        HasSubstr("the memory alone"), Not(HasSubstr("A100"))));
  EXPECT_THAT(error_of("8x4090Ti"), HasSubstr("a GPU such as RTX4090"));
  for (const char* text : {"8H100", "8-H100", "8 H100"})
    EXPECT_THAT(error_of(text), HasSubstr("did you mean '8xH100-SXM5-80GB'?")) << text;
  EXPECT_THAT(error_of("2x8H100"), HasSubstr("did you mean '2x8xH100-SXM5-80GB'?"));
}

TEST(InstanceName, EveryInstanceResolvesByItsOwnNameAndAliases) {
  for (const Instance& row : catalog().instances) {
    const Cluster one = resolve(row.name);
    EXPECT_EQ(one.nodes, 1) << row.name;
    EXPECT_EQ(one.gpus_per_node, row.gpus) << row.name;
    EXPECT_EQ(one.gpu.name, row.gpu) << row.name;
    EXPECT_EQ(one.host_memory, row.host_memory) << row.name;
    const Cluster three = resolve("3x" + row.name);
    EXPECT_EQ(three.nodes, 3) << row.name;
    EXPECT_GT(three.inter_node_bandwidth, 0) << row.name;
    for (const std::string& alias : row.aliases) EXPECT_EQ(resolve(alias).gpu.name, row.gpu);
  }
}

TEST(InstanceName, GivesHostMemoryNvmeAndNetwork) {
  const Cluster two = resolve("2xp4d.24xlarge");
  EXPECT_EQ(two.gpu.name, "A100-SXM4-40GB");
  EXPECT_EQ(two.world(), 16);
  EXPECT_EQ(two.host_memory, Bytes(1152) * (std::int64_t{1} << 30));
  ASSERT_TRUE(two.nvme);
  EXPECT_EQ(two.nvme->capacity, Bytes(8'000'000'000'000));
  EXPECT_EQ(two.nvme->read_bandwidth, 16e9);
  EXPECT_EQ(two.nvme->write_bandwidth, std::nullopt);
  EXPECT_EQ(two.intra_node_bandwidth, 300e9);
  EXPECT_DOUBLE_EQ(two.inter_node_bandwidth, 6.25e9);  // 400 Gb/s for 8 GPUs
  EXPECT_EQ(two.interconnect_source, Source::measured);
  EXPECT_EQ(resolve("P4D 24XLARGE").gpus_per_node, 8);
  EXPECT_EQ(resolve("nd96isr_h100_v5").gpu.name, "H100-SXM5-80GB");
}

TEST(InstanceName, LeavesOutTheHostsOwnNetworkCard) {
  EXPECT_DOUBLE_EQ(resolve("2xa3-highgpu-8g").inter_node_bandwidth, 12.5e9);  // 4 x 200 Gb/s
}

TEST(InstanceName, NoNvmeIsKnownAndUnknownNetworkIsAssumed) {
  const Cluster p3 = resolve("p3.16xlarge");
  ASSERT_TRUE(p3.nvme);
  EXPECT_EQ(p3.nvme->capacity, Bytes(0));
  const Cluster lambda = resolve("2xgpu_8x_h100_sxm5");
  EXPECT_EQ(lambda.world(), 16);
  EXPECT_EQ(lambda.interconnect_source, Source::assumed);
  EXPECT_THAT(lambda.notes, Contains(HasSubstr("network between nodes is assumed")));
  EXPECT_THAT(lambda.notes, Contains(HasSubstr("host memory of gpu_8x_h100_sxm5 is not verified")));
}

TEST(InstanceName, TakesOneCountOnly) {
  EXPECT_THAT(error_of("2x4xp4d.24xlarge"), AllOf(HasSubstr("p4d.24xlarge already has 8 GPUs"),
                                                  HasSubstr("did you mean '2xp4d.24xlarge'?")));
}

TEST(Interconnect, IsNvlinkWhereTheGpuHasItAndPcieElsewhere) {
  EXPECT_EQ(resolve("8xH100").intra_node_bandwidth, 450e9);
  EXPECT_EQ(resolve("8xH100").intra_node_link, "NVLink4");
  EXPECT_EQ(resolve("4xRTX4090").intra_node_bandwidth, 31.5e9);
  EXPECT_EQ(resolve("4xRTX4090").intra_node_link, "PCIe-gen4-x16-no-P2P");
  EXPECT_EQ(resolve("4xL4").intra_node_bandwidth, 15.75e9);
  EXPECT_EQ(resolve("8xH100").interconnect_source, Source::measured);
}

TEST(Interconnect, AssumesTheCataloguesPcie) {
  EXPECT_EQ(kAssumedPcie, find_link(catalog(), "PCIe-gen4-x16")->bandwidth);
}

TEST(Interconnect, BridgesJoinTwoCardsOnly) {
  const Cluster two = resolve("2xA6000");
  EXPECT_EQ(two.intra_node_bandwidth, 56.25e9);
  EXPECT_EQ(two.interconnect_source, Source::assumed);
  EXPECT_THAT(two.notes, Contains(HasSubstr("bridge")));
  const Cluster four = resolve("4xA6000");
  EXPECT_EQ(four.intra_node_bandwidth, 31.5e9);
  EXPECT_THAT(four.notes, Contains(HasSubstr("only in pairs")));
}

TEST(Interconnect, BetweenNodesIsADefaultMarkedAssumed) {
  const Cluster h100 = resolve("2x8xH100");
  EXPECT_EQ(h100.inter_node_bandwidth, 50e9);
  EXPECT_EQ(h100.interconnect_source, Source::assumed);
  EXPECT_THAT(h100.notes, Contains(HasSubstr("network between nodes is assumed")));
  EXPECT_EQ(resolve("2x8xA100").inter_node_bandwidth, 25e9);
  EXPECT_EQ(resolve("2x16xV100").inter_node_bandwidth, 6.25e9);
  EXPECT_EQ(resolve("2x4xRTX4090").inter_node_bandwidth, 12.5e9 / 4);  // one port a node
  EXPECT_THAT(resolve("8xH100").notes, Not(Contains(HasSubstr("between nodes"))));
}

TEST(Interconnect, HostMemoryAndNvmeOfANamedGpuAreUnknown) {
  const Cluster cluster = resolve("8xH100");
  EXPECT_EQ(cluster.host_memory, std::nullopt);
  EXPECT_FALSE(cluster.nvme);
  EXPECT_EQ(cluster.price_per_hour, std::nullopt);
}

TEST(ClusterName, ManyGpusInOneMachineAreQuestioned) {
  EXPECT_THAT(resolve("64xH100").notes, Contains(HasSubstr("write 8x8xH100-SXM5-80GB")));
  EXPECT_EQ(resolve("64xH100").interconnect_source, Source::assumed);
  EXPECT_THAT(resolve("16xV100-SXM3-32GB").notes, IsEmpty());
  EXPECT_EQ(resolve("512xH100").nodes, 64);
  EXPECT_EQ(resolve("512xH100").gpus_per_node, 8);
  EXPECT_EQ(resolve("20xH100").nodes, 1);  // no whole number of machines
}

TEST(ClusterName, UnverifiedMemoryIsSaid) {
  EXPECT_THAT(resolve("8xH100").notes, Contains(HasSubstr("is not verified")));
  EXPECT_THAT(resolve("p4d.24xlarge").notes, Contains(HasSubstr("A100-SXM4-40GB, 39.39 GiB")));
  EXPECT_THAT(resolve("8xA100-SXM4-80GB").notes, IsEmpty());
}

TEST(ClusterName, WhateverIsTypedGivesAClusterOrAnInputError) {
  // Every text within two random edits of a good one, with a fixed seed.
  const std::vector<std::string> good = {"4xA100-40GB", "2x8xH100",   "p4d.24xlarge",
                                         "4x40GB",      "2xDGX A100", "RTX4090-24GB"};
  const std::string letters = "0123456789xX-._ agbAGB*\xc3\x97\n\"";
  std::uint32_t state = 1;
  const auto random = [&](std::size_t below) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
    return (state >> 8) % below;
  };
  std::size_t resolved = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good[random(good.size())];
    for (int edit = 0; edit < 2; ++edit) {
      const std::size_t at = random(text.size() + 1);
      if (random(2) == 0 && at < text.size())
        text.erase(at, 1);
      else
        text.insert(at, 1, letters[random(letters.size())]);
    }
    try {
      const Cluster cluster = resolve(text);
      EXPECT_GE(cluster.world(), 1) << text;
      EXPECT_GT(cluster.gpu.usable, Bytes(0)) << text;
      ++resolved;
    } catch (const InputError& error) {
      EXPECT_EQ(error.diagnostic().key, "cluster") << text;
      ++refused;
    }
  }
  EXPECT_GT(resolved, 100U);
  EXPECT_GT(refused, 100U);
}

}  // namespace
}  // namespace shardplan
