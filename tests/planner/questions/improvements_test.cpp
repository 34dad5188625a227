// What a job that fits could have for the memory that it leaves, and what helps one that has too
// little of its hosts.
#include "questions/improvements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "load/calibration.h"
#include "load/hardware.h"
#include "questions/estimate_job.h"
#include "report/messages.h"

namespace shardplan::improvements_test {
namespace {

class Improvements : public testing::Test {
 protected:
  struct Found {
    Estimate now;
    std::vector<Fix> fixes;
  };
  Found found(const Json& json, const Effort& effort = {}) const {
    const JobContext context{.hardware = &hardware_};
    const Job job = load_job(json, "job.json", context);
    const Estimate now = estimate_job(job, calibration_);
    const WrittenJob written{json, "job.json", context};
    return {now, now.verdict.fits ? find_improvements(job, written, now, calibration_, effort)
                                  : find_fixes(job, written, now, calibration_, effort)};
  }
  static void expect_translated(const Fix& fix) {
    for (const Change& change : fix.changes)
      for (const char* language : {"ja", "ko"})
        EXPECT_TRUE(report::Messages(language).phrase(change.what)) << change.what;
  }

  const HardwareCatalog hardware_ = load_hardware_catalog();
  const Calibration calibration_ = load_calibration();
};

const Json kRoomy = Json::parse(R"({"model": "llama-3.2-1b", "cluster": "4xH100-80GB",
    "checkpointing": "full", "framework": {"name": "deepspeed", "zero_stage": 3}})");

TEST_F(Improvements, AllFitAndAreFasterTheFastestFirst) {
  const Found f = found(kRoomy);
  ASSERT_TRUE(f.now.verdict.fits);
  ASSERT_GE(f.fixes.size(), 2U);
  double before = 0;
  std::set<std::string> subjects;
  for (const Fix& fix : f.fixes) {
    EXPECT_TRUE(fix.after.verdict.fits) << fix.changes.front().what;
    EXPECT_GT(fix.after.time.tokens_per_second, f.now.time.tokens_per_second / kLeastGain)
        << fix.changes.front().what;
    EXPECT_GE(fix.slowdown, before);
    before = fix.slowdown;
    EXPECT_TRUE(subjects.insert(fix.changes.front().subject).second);
    expect_translated(fix);
  }
}

TEST_F(Improvements, AccumulationMakesRoomForALargerMicroBatch) {
  Json json = kRoomy;
  json["workload"] = {{"micro_batch", 1}, {"gradient_accumulation", 64}};
  for (const Fix& fix : found(json).fixes) {
    if (fix.changes.front().subject != "batch") continue;
    Plan plan = load_job(json, "job.json", {.hardware = &hardware_}).plan;
    fix.changes.front().apply(plan);
    EXPECT_EQ(plan.workload.micro_batch * plan.workload.gradient_accumulation, 64);
    return;
  }
  ADD_FAILURE() << "no larger micro-batch";
}

TEST_F(Improvements, AreNoneForAJobThatCannotHaveThem) {
  const Job job = load_job(kRoomy, "job.json", {.hardware = &hardware_});
  Estimate tight = estimate_job(job, calibration_);
  tight.verdict.fits = false;
  const WrittenJob written{kRoomy, "job.json", {.hardware = &hardware_}};
  EXPECT_TRUE(find_improvements(job, written, tight, calibration_).empty());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(found(kRoomy, {.stop = stop.get_token()}).fixes.empty());
}

TEST_F(Improvements, OfGenerationAreLargerBatches) {
  const Found f = found(Json::parse(R"({"model": "llama-3.2-1b", "cluster": "1xH100-80GB",
      "workload": {"kind": "inference", "batch": 1}})"));
  ASSERT_FALSE(f.fixes.empty());
  EXPECT_EQ(f.fixes.front().changes.front().subject, "batch");
  EXPECT_GT(f.fixes.front().after.time.tokens_per_second, f.now.time.tokens_per_second);
  expect_translated(f.fixes.front());
}

/// 70B on two cards of 24 GB, as answer.ai's fsdp_qlora has it: shards wait on the host.
TEST_F(Improvements, DividedStatesGoToTheHost) {
  for (const char* framework : {"fsdp1", "fsdp2"}) {
    const Found f = found(Json{
        {"model", "llama-3-70b"},
        {"cluster", "2xRTX4090"},
        {"framework", framework},
        {"checkpointing", "full"},
        {"workload",
         {{"method", "lora"}, {"sequence_length", 512}, {"lora", {{"quantization", "nf4"}}}}}});
    EXPECT_FALSE(f.now.verdict.fits);
    const auto moved = std::ranges::find_if(f.fixes, [](const Fix& fix) {
      return fix.changes.front().what == "shards and optimizer states on the host";
    });
    ASSERT_NE(moved, f.fixes.end()) << framework;
    EXPECT_TRUE(moved->after.verdict.fits);
    expect_translated(*moved);
  }
}

TEST_F(Improvements, AHostThatIsTooSmallIsWhatFixesRelieve) {
  const Found f = found(Json::parse(R"({"model": "llama-2-7b", "checkpointing": "full",
      "cluster": {"gpu": "A100-SXM4-80GB", "gpus_per_node": 4, "host_memory_bytes": 64000000000},
      "framework": {"name": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu"}})"));
  ASSERT_EQ(f.now.verdict.limited_by, "host");
  ASSERT_FALSE(f.fixes.empty());
  EXPECT_TRUE(f.fixes.front().after.verdict.fits);
  for (const Fix& fix : f.fixes) {
    EXPECT_LT(fix.after.verdict.host.needed, f.now.verdict.host.needed) << fix.changes.front().what;
    expect_translated(fix);
  }
  const bool moves_back = std::any_of(f.fixes.begin(), f.fixes.end(), [](const Fix& fix) {
    return fix.changes.front().what == "all states on the GPUs";
  });
  EXPECT_TRUE(moves_back);
}

/// Megatron-LM's own programs train all parameters.
TEST_F(Improvements, OfferNoAdaptersToMegatronLm) {
  const auto offers = [&](const char* framework) {
    Json job = Json::parse(R"({"model": "llama-2-70b", "cluster": "8xH100-80GB"})");
    job["framework"] = framework;
    const Found f = found(job);
    return std::any_of(f.fixes.begin(), f.fixes.end(), [](const Fix& fix) {
      return fix.changes.front().what.find("LoRA") != std::string::npos;
    });
  };
  EXPECT_TRUE(offers("fsdp2"));
  EXPECT_FALSE(offers("megatron"));
}

}  // namespace
}  // namespace shardplan::improvements_test
