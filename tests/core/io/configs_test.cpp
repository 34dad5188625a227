// Every job under configs/ loads and can be estimated; the ones whose numbers are known have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/rlhf.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

const fs::path kConfigs = fs::path(SHARDPLAN_SOURCE_DIR) / "configs";

struct Answer {
  Job job;
  Estimate estimate;

  std::int64_t resident(Category c) const {
    return estimate.breakdown[static_cast<std::size_t>(c)].resident;
  }
};

Answer answer(const fs::path& file) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  context.directory = file.parent_path().string();
  Answer a;
  a.job = load_job(read_json_file(file.string()), file.string(), context);
  a.estimate = a.job.rlhf ? estimate_rlhf(*a.job.rlhf, load_calibration())
                          : estimate(a.job.model, a.job.plan, load_calibration());
  return a;
}

Answer example(const std::string& name) {
  return answer(kConfigs / "jobs" / (name + ".json"));
}

/// All files that say they are jobs, in the order of their names.
std::vector<fs::path> jobs() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".json") continue;
    const Json json = read_json_file(entry.path().string());
    if (json.value("schema", "") == "shardplan.job/1") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class EveryJob : public ::testing::TestWithParam<fs::path> {};

TEST_P(EveryJob, LoadsWithoutAWarningAndAddsUp) {
  const Answer a = answer(GetParam());
  for (const Diagnostic& d : a.job.diagnostics)
    EXPECT_EQ(d.severity, Severity::note) << to_string(d);
  const Estimate& e = a.estimate;
  EXPECT_GT(e.allocated.point, 0);
  EXPECT_LE(e.device.point, e.device.upper);
  const std::int64_t sum = std::accumulate(
      e.breakdown.begin(), e.breakdown.end(), std::int64_t{0},
      [](std::int64_t total, const CategoryLine& line) { return total + line.at_peak; });
  EXPECT_EQ(sum, e.device.point);
  EXPECT_TRUE(e.verdict.fits) << "an example to start from should fit its cluster";
}

INSTANTIATE_TEST_SUITE_P(Configs, EveryJob, ::testing::ValuesIn(jobs()), [](const auto& file) {
  std::string name = file.param.stem().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST(Configs, HoldAJobForEachWorkloadOfTheGuides) {
  EXPECT_GE(jobs().size(), 13U);
}

TEST(Configs, LlamaTwoTakesTheTrainersBuckets) {
  const Answer a = example("llama-2-7b-zero3");
  EXPECT_EQ(a.estimate.parameters, 6'738'415'616);
  const ZeroOptions& zero = a.job.plan.framework.deepspeed.zero;
  EXPECT_EQ(zero.reduce_bucket_size, 4096 * 4096);
  EXPECT_EQ(zero.prefetch_bucket_size, 4096 * 4096 * 9 / 10);
  EXPECT_EQ(zero.param_persistence_threshold, 10 * 4096);
  EXPECT_EQ(a.job.plan.workload.gradient_accumulation, 4);
  // Every tensor divides by four: 2, 2, 4 and 8 bytes for each of 6.74 B / 4 parameters.
  const std::int64_t share = 6'738'415'616 / 4;
  EXPECT_EQ(a.resident(Category::parameters), 2 * share);
  EXPECT_EQ(a.resident(Category::gradients), 2 * share);
  EXPECT_EQ(a.resident(Category::master_parameters), 4 * share);
  EXPECT_EQ(a.resident(Category::optimizer_states), 8 * share);
}

TEST(Configs, LoraTrainsSixteenMillionParametersAndSharesTheirOptimizer) {
  const Answer a = example("llama-2-7b-lora-zero2-offload");
  // 32 layers, four modules of 4096 by 4096, rank 16: 32 * 4 * 16 * (4096 + 4096).
  EXPECT_EQ(a.estimate.trainable_parameters, 16'777'216);
  EXPECT_EQ(a.estimate.parameters, 6'738'415'616 + 16'777'216);
  EXPECT_EQ(a.job.plan.workload.micro_batch, 4);
  EXPECT_EQ(a.job.plan.workload.gradient_accumulation, 8);
  EXPECT_EQ(a.resident(Category::optimizer_states), 0);
  EXPECT_GT(a.estimate.host_per_node.total(), 16 * 16'777'216);
}

TEST(Configs, PerceptronIsPaddedByItsFlatBufferAtStageTwo) {
  const Answer a = example("mlp-784-128-10-zero2");
  EXPECT_EQ(a.estimate.parameters, 101'770);
  // Two GPUs: padded to a multiple of four, 101,772; each owns 50,886.
  EXPECT_EQ(a.resident(Category::parameters), 4 * 101'772);
  EXPECT_EQ(a.resident(Category::master_parameters), 4 * 50'886);
  EXPECT_EQ(a.resident(Category::optimizer_states), 8 * 50'886);
}

TEST(Configs, PerceptronIsPaddedTensorByTensorAtStageThree) {
  const Answer a = example("mlp-784-128-10-zero3");
  // 100,352 + 128 + 1,280 + 10, each over two GPUs; masters are a copy even of fp32 shards.
  const std::int64_t shard = 50'176 + 64 + 640 + 5;
  EXPECT_EQ(a.resident(Category::parameters), 4 * shard);
  EXPECT_EQ(a.resident(Category::master_parameters), 4 * shard);
  EXPECT_EQ(a.resident(Category::optimizer_states), 8 * shard);
}

TEST(Configs, ZeroInfinityPutsSixteenBytesAParameterOnNvme) {
  const Answer a = example("llama-2-70b-zero-infinity");
  const std::int64_t parameters = 68'976'648'192;
  // fp32 master, gradient and two moments; 16-bit parameters beyond the 1e9 that each of eight
  // processes keeps in memory.
  EXPECT_EQ(a.estimate.host_per_node.nvme,
            16 * parameters + 2 * (parameters - 8 * std::int64_t{1'000'000'000}));
}

TEST(Configs, DataParallelBucketsAreViewsOfTheGradients) {
  const Answer one = example("gpt2-single"), four = example("gpt2-ddp");
  EXPECT_EQ(one.estimate.parameters, 124'439'808);
  // DDP with views keeps as many gradients, but all of the time.
  EXPECT_EQ(four.resident(Category::gradients), one.resident(Category::gradients));
  EXPECT_EQ(four.resident(Category::communication_buffers), 0);
  EXPECT_GE(four.estimate.allocated.point, one.estimate.allocated.point);
}

}  // namespace
}  // namespace shardplan
