// Models on GPUs of their own beside a trainer's: what they leave of its memory, and who waits.
#include "estimate/apart.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::models_apart_test {
namespace {

/// PPO of a 1.5B policy on four GPUs, 64 answers to each.
Job job_of(const Json& models, const Json& more = Json::object()) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "qwen2.5-1.5b", "cluster": "4xH100-80GB",
    "framework": {"name": "deepspeed", "zero_stage": 3}, "trainer": "openrlhf",
    "precision": "bf16-master", "checkpointing": "full",
    "workload": {"kind": "rlhf", "algorithm": "ppo", "micro_batch": 4, "generation_batch": 64,
                 "gradient_accumulation": 16, "prompt_length": 512, "new_tokens": 512,
                 "rollout": {"engine": "vllm", "gpu_memory_utilization": 0.3}}})",
                         "ppo");
  json["workload"]["models"] = models;
  json.merge_patch(more);
  return load_job(json, "job.json", {.hardware = &hardware, .directory = ""});
}

Estimate estimated(const Json& models, const Json& more = Json::object()) {
  static const Calibration calibration = load_calibration();
  return estimate_rlhf(*job_of(models, more).rlhf, calibration);
}

double seconds_of(const Estimate& e, Phase phase) {
  double sum = 0;
  for (const TimeEstimate::PhaseTime& p : e.time.phases)
    if (p.phase == phase) sum += p.seconds;
  return sum;
}

TEST(ModelsApart, LeaveTheTrainersGpus) {
  const Estimate together = estimated(Json::object());
  const Estimate apart = estimated({{"reward", {{"gpus", 4}}}, {"critic", {{"gpus", 4}}}});
  ASSERT_EQ(apart.apart.size(), 2U);
  EXPECT_TRUE(together.apart.empty());
  EXPECT_LT(apart.device.point, together.device.point);
  EXPECT_EQ(apart.parameters, together.parameters);
  EXPECT_GT(apart.apart.front().trains_seconds, 0);
  EXPECT_EQ(apart.apart.back().trains_seconds, 0);
  EXPECT_GT(apart.apart.front().device.point, apart.apart.back().device.point);
}

/// They score and train while the trainer's GPUs do: an iteration is shorter, and phases add up.
TEST(ModelsApart, WorkAtTheSameTime) {
  const Estimate together = estimated(Json::object());
  const Estimate apart = estimated({{"critic", {{"gpus", 4}}}});
  EXPECT_LT(apart.time.step_seconds, together.time.step_seconds);
  double phases = 0;
  for (const TimeEstimate::PhaseTime& p : apart.time.phases) phases += p.seconds;
  EXPECT_NEAR(phases, apart.time.step_seconds, 1e-9);
}

/// On fewer GPUs a model has more samples on each: in the end the trainer waits for it.
TEST(ModelsApart, AreWaitedForWhereTheyAreSlower) {
  // Weights are whole on each GPU: passes do not wait for others.
  const Json whole{{"framework", {{"name", "deepspeed"}, {"zero_stage", 2}}}};
  const Estimate four = estimated({{"reference", {{"gpus", 4}}}}, whole);
  const Estimate one = estimated({{"reference", {{"gpus", 1}}}}, whole);
  EXPECT_NEAR(one.apart.front().scores_seconds, 4 * four.apart.front().scores_seconds,
              0.1 * one.apart.front().scores_seconds);
  EXPECT_NEAR(seconds_of(one, Phase::experience),
              std::max(seconds_of(four, Phase::experience), one.apart.front().scores_seconds),
              1e-9);
}

TEST(ModelsApart, ShareGpusOfTheirOwn) {
  const Estimate shared =
      estimated({{"critic", {{"gpus", 4}}}, {"reward", {{"beside", "critic"}}}});
  const Estimate alone = estimated({{"critic", {{"gpus", 4}}}});
  ASSERT_EQ(shared.apart.size(), 1U);
  EXPECT_EQ(shared.apart.front().names, "critic, reward");
  EXPECT_GT(shared.apart.front().device.point, alone.apart.front().device.point);
}

TEST(ModelsApart, AreAmongTheGpusThatArePaid) {
  EXPECT_EQ(job_of({{"reward", {{"gpus", 2}}}}).plan.paid_gpus(), 6);
}

TEST(ModelsApart, RefusesWhatTheyCannotBe) {
  const auto refused = [](const Json& models, const Json& more = Json::object()) {
    return error_text([&] { job_of(models, more); });
  };
  EXPECT_NE(refused({{"actor", {{"gpus", 2}}}}).find("models.actor"), std::string::npos);
  EXPECT_NE(refused({{"reward", {{"gpus", 6}}}}).find("a multiple of 4"), std::string::npos);
  EXPECT_NE(refused({{"reward", {{"beside", "critic"}}}}).find("models.critic.gpus"),
            std::string::npos);
  EXPECT_NE(refused({{"reward", {{"gpus", 2}, {"idle", "host"}}}}).find("idle"), std::string::npos);
}

}  // namespace
}  // namespace shardplan::models_apart_test
