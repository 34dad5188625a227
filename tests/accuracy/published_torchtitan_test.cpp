// torchtitan's benchmark of December 2024 (benchmarks/llama3_h100_202412_torchtitan.md, tables 1
// and 3): Llama 3.1 8B under FSDP2 on H100 of 96 GB and 500 W, train_configs/llama3_8b.toml of its
// commit 9dec370 with a local batch of 2. No constant was fitted to it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "base/units.h"
#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::published_torchtitan_test {
namespace {

struct Row {
  int nodes = 1;
  bool compiled = false;
  double tokens_per_second = 0;  ///< of each GPU
  double gib = 0;                ///< reserved
};

constexpr std::array kRows{Row{1, false, 5762, 82.4}, Row{1, true, 6667, 77.0},
                           Row{16, false, 5605, 67.0}, Row{16, true, 6514, 62.0}};

Json job_of(const Row& row) {
  return {{"schema", "shardplan.job/1"},
          {"model", "llama-3.1-8b"},
          {"cluster", std::to_string(row.nodes) + "x8xH100-SXM5-96GB"},
          {"framework", {{"name", "fsdp2"}, {"reduce_dtype", "fp32"}}},
          {"precision", "bf16-autocast"},
          {"trainer", "torchtitan"},
          {"checkpointing", {{"policy", "selective_op"}, {"every", 2}}},
          {"optimizer", {{"name", "adamw"}, {"implementation", "fused"}}},
          {"gradient_clipping", 1.0},
          {"compile", row.compiled},
          {"workload", {{"micro_batch", 2}, {"sequence_length", 8192}}}};
}

TEST(PublishedTorchtitan, ThroughputWithinFifteenPerCentAndMemoryWithinThree) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  double sum = 0;
  for (const Row& row : kRows) {
    const Job job = load_job(job_of(row), "published", {&hardware, ""});
    const Estimate e = estimate(job.model, job.plan, calibration);
    const std::string name =
        std::to_string(8 * row.nodes) + (row.compiled ? " compiled" : " eager");
    const double error = e.time.tokens_per_second / (8.0 * row.nodes) / row.tokens_per_second - 1;
    const double memory =
        static_cast<double>(e.reserved.point) / static_cast<double>(kGiB) / row.gib - 1;
    RecordProperty(name, std::to_string(error) + ", memory " + std::to_string(memory));
    EXPECT_LT(std::abs(error), 0.20) << name;
    EXPECT_LT(std::abs(memory), 0.03) << name;
    sum += std::abs(error);
  }
  EXPECT_LE(sum / static_cast<double>(kRows.size()), 0.15);
}

/// PyTorch of December 2024 ran FlashAttention-2 on Hopper, where 2.11 runs cuDNN's kernels: on an
/// H200 3.24 and 9.44 ms, forward and backward, beside 2.02 and 5.82, for just these rows' heads
/// (data/measurements/rates/h200/h200-shared-power.json).
Calibration with_attention_of_its_day() {
  Calibration calibration = load_calibration();
  calibration.time.kernels.attention.peak *= 2.016 / 3.238;
  calibration.time.kernels.attention_backward.peak *= 5.821 / 9.444;
  return calibration;
}

TEST(PublishedTorchtitan, ThroughputWithinNinePerCentWithAttentionOfItsDay) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = with_attention_of_its_day();
  double sum = 0;
  for (const Row& row : kRows) {
    const Job job = load_job(job_of(row), "published", {&hardware, ""});
    const Estimate e = estimate(job.model, job.plan, calibration);
    const double error = e.time.tokens_per_second / (8.0 * row.nodes) / row.tokens_per_second - 1;
    EXPECT_LT(std::abs(error), row.compiled ? 0.09 : 0.025) << row.nodes << row.compiled;
    sum += std::abs(error);
  }
  EXPECT_LE(sum / static_cast<double>(kRows.size()), 0.05);
}

/// The same by the rates of 14 shapes, which none of these rows is in
/// (data/measurements/rates/h200/h200-flash-attention.json).
TEST(PublishedTorchtitan, ThroughputWithinSixPerCentWithFlashAttention) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  double sum = 0;
  for (const Row& row : kRows) {
    Json text = job_of(row);
    text["sdpa_kernel"] = "flash_attention";
    const Job job = load_job(text, "published", {&hardware, ""});
    const Estimate e = estimate(job.model, job.plan, calibration);
    const double error = e.time.tokens_per_second / (8.0 * row.nodes) / row.tokens_per_second - 1;
    EXPECT_LT(std::abs(error), 0.06) << row.nodes << row.compiled;
    sum += std::abs(error);
  }
  EXPECT_LE(sum / static_cast<double>(kRows.size()), 0.04);
}

}  // namespace
}  // namespace shardplan::published_torchtitan_test
