// What GPUs say of themselves besides rates, what is assumed where they do not, and who reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/abilities.h"
#include "json/reader.h"
#include "load/cluster.h"
#include "load/hardware.h"
#include "lowering/library_workspaces.h"
#include "support/error_of.h"
#include "timing/kernel_time.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const HardwareCatalog& catalog() {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  return kCatalog;
}

const Gpu& gpu(std::string_view name) {
  const CatalogGpu* found = find_gpu(catalog(), name);
  if (found == nullptr) throw std::runtime_error("no GPU " + std::string(name));
  return found->gpu;
}

Cluster load(const std::string& gpu_fields) {
  const std::string text =
      R"({"gpu": {"name": "X", "memory_bytes": 200000000000, "usable_bytes": 200000000000)" +
      gpu_fields + "}}";
  return load_cluster(parse_json(text, "job.json"), "job.json", "cluster", catalog());
}

TEST(Abilities, OfNvidiasGpusAreAllStated) {
  for (const CatalogGpu& row : catalog().gpus) {
    const Gpu& g = row.gpu;
    if (g.vendor != "NVIDIA") continue;
    EXPECT_THAT(g.assumed_abilities, IsEmpty()) << g.name;
    EXPECT_EQ(g.abilities.runtime, "CUDA");
    EXPECT_EQ(g.abilities.collectives, "NCCL");
    EXPECT_EQ(g.abilities.issue_lanes, 128) << g.name;
  }
  EXPECT_EQ(cublas_workspace(gpu("A100-SXM4-80GB")), 8'519'680);  // :4096:2:16:8
  EXPECT_EQ(cublas_workspace(gpu("H100-SXM5-80GB")), 33'554'432);
  EXPECT_EQ(gpu("L4-24GB").abilities.transformer_engine_workspace_bytes, 4'194'304);
}

TEST(Abilities, OfOtherVendorsAreTheirOwnOrSaidToBeAssumed) {
  const Gpu& mi300x = gpu("MI300X-192GB");
  EXPECT_EQ(mi300x.abilities.runtime, "ROCm");
  EXPECT_EQ(mi300x.abilities.collectives, "RCCL");
  EXPECT_EQ(cublas_workspace(mi300x), std::int64_t{128} << 20);
  EXPECT_EQ(cublas_workspace(gpu("MI250X-64GB")), std::int64_t{32} << 20);
  EXPECT_EQ(mi300x.abilities_like, "Hopper");
  EXPECT_THAT(mi300x.assumed_abilities, Contains("issue_lanes"));
  EXPECT_THAT(mi300x.assumed_abilities, Not(Contains("blas_workspace_bytes")));
  EXPECT_THAT(abilities_note(mi300x), HasSubstr("assumed to be as on Hopper"));
  EXPECT_EQ(abilities_note(gpu("H200-SXM5-141GB")), "");
  EXPECT_EQ(gpu("Gaudi3-128GB").abilities.collectives, "HCCL");
}

TEST(Abilities, APartMayStateItsOwn) {
  EXPECT_EQ(gpu("A100-SXM4-80GB").abilities.fp32_lanes, 64);
  EXPECT_EQ(gpu("A10-24GB").abilities.fp32_lanes, 128);  // Ampere too
}

TEST(Abilities, HalfOfTheLanesIssueAsMuch) {
  const auto slots = [](std::string_view name) { return peaks_of(gpu(name), DType::bf16).slots; };
  EXPECT_EQ(slots("A100-SXM4-80GB"), 2 * 19.5e12);
  EXPECT_EQ(slots("V100-SXM2-32GB"), 2 * 15.7e12);
  EXPECT_EQ(slots("H100-SXM5-80GB"), 67e12);
}

TEST(Abilities, AlignmentIsInBytes) {
  Kernel p;
  p.kind = KernelKind::product;
  p.type = DType::bf16;
  p.m = p.n = 4096;
  p.k = 4104;  // 8 divides it, 16 does not
  GpuPeaks peaks = peaks_of(gpu("H100-SXM5-80GB"), DType::bf16);
  const double aligned = kernel_seconds(p, peaks, {});
  peaks.alignment = 32;
  EXPECT_GT(kernel_seconds(p, peaks, {}), 2 * aligned);
}

TEST(ClusterGpu, OfAnyCapabilityIsTaken) {
  const Cluster known = load(R"(, "compute_capability": "gfx942")");
  EXPECT_EQ(known.gpu.abilities.runtime, "ROCm");
  EXPECT_EQ(cublas_workspace(known.gpu), std::int64_t{128} << 20);
  const Cluster older = load(R"(, "arch": "Ampere", "compute_capability": "8.0")");
  EXPECT_EQ(older.gpu.abilities.fp32_lanes, 64);
  EXPECT_THAT(older.notes, Not(Contains(HasSubstr("not known"))));
  EXPECT_EQ(load(R"(, "arch": "Volta")").gpu.abilities.fp32_lanes, 64);
  for (const char* odd : {"gfx1100", "", "x", "99999999999999999999", "-1"}) {
    const Cluster c = load(std::string(R"(, "compute_capability": ")") + odd + "\"");
    EXPECT_THAT(c.gpu.assumed_abilities, SizeIs(kAbilityFields.size())) << odd;
    EXPECT_THAT(c.notes, Contains(HasSubstr("what is not known of X is assumed to be as on")))
        << odd;
  }
}

TEST(ClusterGpu, StatesWhatItKnowsOfItself) {
  const Cluster c = load(R"(, "vendor": "AMD", "runtime": "ROCm", "collectives": "RCCL",
    "product_alignment_bytes": 32, "unaligned_batched_products": false, "fp32_lanes": 64,
    "issue_lanes": 64, "blas_workspace_bytes": 1048576,
    "transformer_engine_workspace_bytes": 0, "host_memory_gbs": 300)");
  EXPECT_THAT(c.gpu.assumed_abilities, IsEmpty());
  EXPECT_THAT(c.notes, Not(Contains(HasSubstr("not known"))));
  EXPECT_EQ(c.gpu.abilities.product_alignment_bytes, 32);
  EXPECT_EQ(cublas_workspace(c.gpu), 1'048'576);
  const Cluster of_vendor = load(R"(, "vendor": "AMD", "fp32_lanes": 64)");
  EXPECT_EQ(of_vendor.gpu.abilities.runtime, "ROCm");  // as AMD's nearest in memory
  EXPECT_THAT(of_vendor.gpu.stated_abilities, ElementsAre("fp32_lanes"));
  EXPECT_THAT(of_vendor.gpu.assumed_abilities, SizeIs(kAbilityFields.size() - 1));
}

TEST(ClusterGpu, MistakesInAbilitiesNameTheKey) {
  EXPECT_THAT(error_text([] { load(R"(, "fp32_lanes": 0)"); }),
              HasSubstr("cluster.gpu.fp32_lanes"));
  EXPECT_THAT(error_text([] { load(R"(, "runtime": 4)"); }), HasSubstr("cluster.gpu.runtime"));
  EXPECT_THAT(error_text([] { load(R"(, "fp32_lane": 64)"); }), HasSubstr("'fp32_lanes'"));
}

}  // namespace
}  // namespace shardplan
