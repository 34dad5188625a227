// Jobs with tiled feed-forwards: what they keep, and what refuses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::tiles_test {
namespace {

using ::testing::HasSubstr;

Job loaded(const Json& more, const std::string& cluster = "1xH100") {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  Json job = {
      {"model", "llama-3.1-8b"}, {"cluster", cluster},
      {"framework", "single"},   {"precision", "bf16-pure"},
      {"mlp_tiles", 8},          {"workload", {{"micro_batch", 1}, {"sequence_length", 8192}}}};
  if (!more.is_null()) job.merge_patch(more);
  return load_job(job, "job.json", {.hardware = &kHardware, .directory = ""});
}

Estimate estimated(const Json& more, const std::string& cluster = "1xH100") {
  const Job job = loaded(more, cluster);
  return estimate(job.model, job.plan, load_calibration());
}

std::string error(const Json& more, const std::string& cluster = "1xH100") {
  return error_text([&] { loaded(more, cluster); });
}

/// Of 32 layers four tensors of 8,192 x 14,336 numbers in 2 bytes stay away where the peak is: at
/// the loss, where no part of a feed-forward is alive.
TEST(Tiles, LeaveOutWhatFeedForwardsKeep) {
  constexpr std::int64_t kEach = 4LL * 8192 * 14336 * 2;
  const Estimate whole = estimated({{"mlp_tiles", 0}}), tiled = estimated({});
  EXPECT_EQ(whole.allocated.point - tiled.allocated.point, 32 * kEach);
}

/// Three products of 4,096 x 14,336 of each token and layer once more, at the peak of an H100 or at
/// half of it.
TEST(Tiles, TakeTheTimeOfAnotherPass) {
  constexpr double kPeak = 32 * 8192.0 * 3 * 2 * 4096 * 14336 / 989e12;
  const double whole = estimated({{"mlp_tiles", 0}}).time.step_seconds;
  for (const int parts : {1, 8}) {
    const double tiled = estimated({{"mlp_tiles", parts}}).time.step_seconds;
    EXPECT_GT(tiled - whole, kPeak);
    EXPECT_LT(tiled - whole, 2 * kPeak);
  }
}

/// Under ZeRO the engine takes whole gradients; under FSDP2 axolotl has sums beside them.
TEST(Tiles, RunUnderEnginesThatWaitForTheLastPart) {
  const Json deepspeed = {
      {"framework",
       {{"name", "deepspeed"},
        {"ds_config", {{"zero_optimization", {{"stage", 3}}}, {"bf16", {{"enabled", true}}}}}}},
      {"precision", nullptr}};
  const Json fsdp2 = {{"framework", "fsdp2"}, {"trainer", "axolotl"}};
  for (Json job : {deepspeed, fsdp2}) {
    const std::int64_t tiled = estimated(job, "8xH100").allocated.point;
    job["mlp_tiles"] = 0;
    EXPECT_LT(tiled, estimated(job, "8xH100").allocated.point) << job;
  }
}

TEST(Tiles, AreRefusedWhereTheyCannotRun) {
  const Json ddp = {{"framework", "ddp"}, {"model", "llama-3.2-1b"}};
  EXPECT_THAT(error(ddp, "8xH100"), HasSubstr("mark a variable ready only once"));
  EXPECT_THAT(error({{"framework", "fsdp2"}}, "8xH100"), HasSubstr("after the first part"));
  EXPECT_THAT(error({{"framework", "fsdp1"}}, "8xH100"), HasSubstr("not estimated under fsdp1"));
  EXPECT_THAT(error({{"compile", true}}), HasSubstr("breaks the graph"));
  EXPECT_THAT(error({{"activation_offloading", "streams"}}), HasSubstr("activation_offloading"));
  EXPECT_THAT(error({{"checkpointing", "selective"}}), HasSubstr("results of products"));
  const Json inference = {
      {"workload",
       {{"kind", "inference"}, {"micro_batch", nullptr}, {"sequence_length", nullptr}}}};
  EXPECT_THAT(error(inference), HasSubstr("mlp_tiles"));
  EXPECT_THAT(error({{"model", "mixtral-8x7b"}}), HasSubstr("no dense feed-forward"));
}

}  // namespace
}  // namespace shardplan::tiles_test
