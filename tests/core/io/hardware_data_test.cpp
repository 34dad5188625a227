// The files under data/hardware: consistent, sourced, and what was measured is there unchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/nearest.h"
#include "hardware/catalog.h"
#include "json/document.h"
#include "json/reader.h"
#include "load/hardware.h"

namespace shardplan::hardware_data_test {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;

const HardwareCatalog& catalog() {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  return kCatalog;
}

const Gpu& gpu(std::string_view name) {
  const CatalogGpu* found = find_gpu(catalog(), name);
  if (found == nullptr) throw std::runtime_error("no GPU " + std::string(name));
  return found->gpu;
}

TEST(HardwareData, HoldsTheWholeCatalogue) {
  EXPECT_EQ(catalog().gpus.size(), 68U);
  EXPECT_GE(catalog().links.size(), 30U);
  EXPECT_EQ(catalog().instances.size(), 68U);
  EXPECT_EQ(catalog().storage.size(), 7U);
  EXPECT_EQ(catalog().cpu_adam.size(), 2U);
}

TEST(HardwareData, UsableMemoryIsPositiveAndNeverMoreThanTheDriversTotal) {
  for (const CatalogGpu& row : catalog().gpus) {
    EXPECT_GT(row.gpu.usable, Bytes(0)) << row.gpu.name;
    EXPECT_LE(row.gpu.usable, row.gpu.capacity) << row.gpu.name;
    const double size = static_cast<double>(row.memory_gb);
    EXPECT_GT(row.gpu.usable.gib(), 0.9 * size) << row.gpu.name;
    EXPECT_LE(row.gpu.capacity.gib(), 1.03 * size) << row.gpu.name;
  }
}

TEST(HardwareData, MeasuredAndPublishedMemoryIsExact) {
  EXPECT_EQ(gpu("H200-SXM5-141GB").usable, Bytes(150'109'880'320));
  EXPECT_EQ(gpu("H200-SXM5-141GB").capacity, Bytes(143'771) * (1 << 20));
  EXPECT_EQ(gpu("H200-SXM5-141GB").usable_source, Source::measured);
  EXPECT_EQ(gpu("RTX4090-24GB").usable, Bytes(24'080) * (1 << 20));
  EXPECT_EQ(gpu("A100-SXM4-80GB").capacity, Bytes(80) * (1 << 30));
  EXPECT_NEAR(gpu("A100-SXM4-80GB").usable.gib(), 79.15, 1e-6);
}

TEST(HardwareData, MemoryThatNobodyReadIsMarkedAssumed) {
  for (const char* name : {"GH200-144GB", "MI250X-64GB", "RTX4080-16GB", "H20-SXM5-141GB"}) {
    EXPECT_EQ(gpu(name).usable_source, Source::assumed) << name;
    EXPECT_THAT(gpu(name).unverified, Contains("memory_driver_mib")) << name;
    EXPECT_THAT(gpu(name).unverified, Contains("memory_usable_gib")) << name;
  }
}

/// As out-of-memory messages of PyTorch name it, on machines of many owners.
TEST(HardwareData, UsableMemoryThatMessagesConfirm) {
  const std::vector<std::pair<const char*, double>> read = {
      {"GB200-186GB", 184.31},    {"B200-SXM6-180GB", 178.35}, {"B300-SXM6-288GB", 267.69},
      {"GB300-288GB", 276.50},    {"MI325X-256GB", 255.98},    {"MI355X-288GB", 287.98},
      {"RTXPRO6000-96GB", 94.97}, {"RTX3090-24GB", 23.56},     {"RTX4090-24GB", 23.52}};
  for (const auto& [name, gib] : read) {
    EXPECT_NEAR(gpu(name).usable.gib(), gib, 0.005) << name;
    EXPECT_EQ(gpu(name).usable_source, Source::measured) << name;
  }
}

TEST(HardwareData, VariantsOfAFamilyDifferWhereTheyDo) {
  EXPECT_EQ(gpu("A800-SXM4-80GB").nvlink_bandwidth, 200e9);
  EXPECT_EQ(gpu("A800-SXM4-80GB").peak[PeakRate::bf16], gpu("A100-SXM4-80GB").peak[PeakRate::bf16]);
  EXPECT_EQ(gpu("H800-SXM5-80GB").nvlink_bandwidth, 200e9);
  EXPECT_EQ(gpu("H800-SXM5-80GB").memory_bandwidth, gpu("H100-SXM5-80GB").memory_bandwidth);
  EXPECT_EQ(gpu("H20-SXM5-96GB").peak[PeakRate::bf16], 148e12);
  EXPECT_EQ(gpu("MI355X-288GB").peak[PeakRate::bf16], 2500e12);
  EXPECT_EQ(gpu("MI350X-288GB").peak[PeakRate::bf16], 2300e12);
  EXPECT_EQ(gpu("RTXPRO6000-Server-96GB").peak[PeakRate::bf16], 467.8e12);
}

TEST(HardwareData, UnverifiedFieldsAreCarried) {
  EXPECT_THAT(gpu("A100-SXM4-40GB").unverified, Contains("memory_usable_gib"));
  EXPECT_EQ(gpu("A100-SXM4-40GB").usable_source, Source::assumed);
  EXPECT_THAT(gpu("L40-48GB").unverified, Contains("tflops_dense"));
  EXPECT_THAT(find_link(catalog(), "InfiniBand XDR 800")->unverified, Contains("effective_gbs"));
  EXPECT_THAT(find_instance(catalog(), "g5.xlarge")->unverified, Contains("network_gbps"));
}

/// "a.b" names a key of the object or of an object in it.
bool has_path(const Json& row, const std::string& path) {
  const auto dot = path.find('.');
  if (dot == std::string::npos) return row.contains(path);
  const auto inner = row.find(path.substr(0, dot));
  return inner != row.end() && has_path(*inner, path.substr(dot + 1));
}

TEST(HardwareData, EveryRowHasASourceAndNamesOnlyItsOwnFieldsAsUnverified) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> tables = {
      {"gpus", {"architectures", "gpus"}}, {"links", {"links"}},
      {"instances", {"instances"}},        {"storage", {"storage"}},
      {"failures", {"failures"}},          {"host", {"cpu_adam"}}};  // prices have theirs by list
  for (const auto& [file, keys] : tables) {
    const Json json = read_json_file(SHARDPLAN_SOURCE_DIR "/data/hardware/" + file + ".json");
    for (const std::string& key : keys) {
      for (const Json& row : json.at(key)) {
        const std::string name = row.at("name").get<std::string>();
        const Json& sources = row.contains("sources") ? row.at("sources") : row.at("source");
        ASSERT_FALSE(sources.empty()) << name;
        for (const Json& source : sources)
          EXPECT_THAT(source.get<std::string>(), Not(IsEmpty())) << name;
        for (const Json& field : row.at("unverified"))
          EXPECT_TRUE(has_path(row, field.get<std::string>())) << name << " " << field;
      }
    }
  }
  for (const DefaultNetwork& row : catalog().default_networks)
    EXPECT_THAT(row.source, Not(IsEmpty()));
  EXPECT_THAT(catalog().nccl.source, Not(IsEmpty()));
}

TEST(HardwareData, EveryPriceHasADayAPlaceAndASource) {
  std::size_t priced = 0;
  for (const Instance& row : catalog().instances) {
    if (!row.price) continue;
    ++priced;
    EXPECT_EQ(row.price->provider, row.provider);
    EXPECT_EQ(row.price->machine, row.name);
    EXPECT_THAT(row.price->as_of, testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]"));
    EXPECT_THAT(row.price->region, Not(IsEmpty())) << row.name;
    EXPECT_THAT(row.price->source, testing::HasSubstr("https://")) << row.name;
    // What a GPU has cost since 2016, by the hour.
    const double each = row.price->on_demand / static_cast<double>(row.gpus);
    EXPECT_GT(each, 0.3) << row.name;
    EXPECT_LT(each, 40) << row.name;
    if (row.price->spot) {
      EXPECT_LT(*row.price->spot, row.price->on_demand) << row.name;
    }
  }
  EXPECT_GE(priced, 50U);
  EXPECT_EQ(find_instance(catalog(), "p5.48xlarge")->price->on_demand, 55.04);
}

TEST(HardwareData, CheckpointsAndFailuresHaveAPublishedDefault) {
  EXPECT_NE(find_storage(catalog(), catalog().shared_storage), nullptr);
  ASSERT_FALSE(catalog().failures.empty());
  EXPECT_NEAR(catalog().failures.front().gpu_hours, 16384.0 * 54 * 24 / 466, 1e-6);
  EXPECT_EQ(catalog().restart_seconds, 600);
}

TEST(HardwareData, NamesAndAliasesAreUnique) {
  std::set<std::string> gpus, links, instances;
  for (const CatalogGpu& row : catalog().gpus)
    EXPECT_TRUE(gpus.insert(normalized(row.gpu.name)).second) << row.gpu.name;
  for (const Link& row : catalog().links)
    EXPECT_TRUE(links.insert(normalized(row.name)).second) << row.name;
  for (const Instance& row : catalog().instances) {
    EXPECT_TRUE(instances.insert(normalized(row.name)).second) << row.name;
    for (const std::string& alias : row.aliases)
      EXPECT_TRUE(instances.insert(normalized(alias)).second) << alias;
  }
}

TEST(HardwareData, EveryReferenceFromOneFileToAnotherResolves) {
  for (const CatalogGpu& row : catalog().gpus) {
    const Gpu& g = row.gpu;
    if (g.nvlink_bandwidth) {
      EXPECT_NE(find_link(catalog(), g.nvlink_link), nullptr) << g.name;
    }
    const Link* pcie = find_link(catalog(), g.pcie_link);
    ASSERT_NE(pcie, nullptr) << g.name;
    EXPECT_EQ(pcie->bandwidth, g.pcie_bandwidth) << g.name;
  }
  for (const Instance& row : catalog().instances) {
    EXPECT_NE(find_gpu(catalog(), row.gpu), nullptr) << row.name;
    if (!row.storage.empty()) {
      EXPECT_NE(find_storage(catalog(), row.storage), nullptr) << row.name;
    }
  }
  for (const DefaultNetwork& row : catalog().default_networks)
    EXPECT_NE(find_link(catalog(), row.link), nullptr) << row.arch;
}

TEST(HardwareData, NvlinkRatesAreOfOneDirection) {
  // A whole A100 moves 600 GB/s over NVLink, both directions together; an H100 900; a B200 1800.
  EXPECT_EQ(gpu("A100-SXM4-80GB").nvlink_bandwidth, 300e9);
  EXPECT_EQ(gpu("H100-SXM5-80GB").nvlink_bandwidth, 450e9);
  EXPECT_EQ(gpu("B200-SXM6-180GB").nvlink_bandwidth, 900e9);
  for (const Link& link : catalog().links) {
    if (link.effective) {
      EXPECT_LE(*link.effective, link.bandwidth) << link.name;
    }
  }
}

TEST(HardwareData, DensePeaksGrowAsPrecisionShrinks) {
  for (const CatalogGpu& row : catalog().gpus) {
    const PeakFlops& p = row.gpu.peak;
    ASSERT_TRUE(p[PeakRate::fp16]) << row.gpu.name;
    if (p[PeakRate::fp32]) {
      EXPECT_LT(*p[PeakRate::fp32], *p[PeakRate::fp16]) << row.gpu.name;
    }
    if (p[PeakRate::bf16]) {
      EXPECT_EQ(*p[PeakRate::bf16], *p[PeakRate::fp16]) << row.gpu.name;
    }
    // Gaudi 3 runs fp8 and bf16 at one rate.
    if (p[PeakRate::fp8] && row.gpu.arch != "Gaudi3") {
      EXPECT_NEAR(*p[PeakRate::fp8] / *p[PeakRate::fp16], 2.0, 0.03) << row.gpu.name;
    }
    if (row.gpu.achievable[PeakRate::bf16]) {
      EXPECT_LT(*row.gpu.achievable[PeakRate::bf16], *p[PeakRate::bf16]) << row.gpu.name;
    }
  }
  EXPECT_EQ(gpu("V100-SXM2-32GB").peak[PeakRate::bf16], std::nullopt);
  EXPECT_EQ(gpu("H100-SXM5-80GB").peak[PeakRate::bf16], 989.5e12);
}

TEST(HardwareData, TheTypicalUsableRatioIsTheMedianOfWhatWasRead) {
  EXPECT_NEAR(typical_usable_ratio(catalog()), 0.988, 0.004);
  HardwareCatalog three;
  for (const std::int64_t gib : {7, 9, 8}) {
    CatalogGpu row{.memory_gb = 10};
    row.gpu.usable = Bytes(gib) * (1 << 30);
    three.gpus.push_back(row);
  }
  EXPECT_DOUBLE_EQ(typical_usable_ratio(three), 0.8);
  three.gpus[0].gpu.usable_source = three.gpus[2].gpu.usable_source = Source::assumed;
  EXPECT_DOUBLE_EQ(typical_usable_ratio(three), 0.9);
}

TEST(HardwareData, NcclConstantsAreInSeconds) {
  EXPECT_DOUBLE_EQ(catalog().nccl.base.ring.simple, 8.4e-6);
  EXPECT_DOUBLE_EQ(catalog().nccl.nvlink_hop.ring.ll128, 1.9e-6);
  EXPECT_DOUBLE_EQ(*catalog().nccl.network_hop.nvls_tree, 20.9e-6);
  EXPECT_THAT(catalog().nccl.bandwidth_per_link, Contains(testing::Pair("nvlink_sm90", 20.6e9)));
}

}  // namespace
}  // namespace shardplan::hardware_data_test
