// Runs of NeMo RL's performance summary (data/published/nemo_rl.json): each recipe's settings are
// imported, and what ran must not be said not to fit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "base/checked.h"
#include "estimate/rlhf.h"
#include "import/import.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::published_nemo_rl_test {
namespace {

const Json& table() {
  static const Json json = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/nemo_rl.json");
  return json;
}

constexpr int kLimit = 4096;

/// With samples as long as those it ran on, in rows and an engine of the recipe's limit: as many in
/// a row as it has room for.
std::string recipe_of(const Json& row) {
  const Json& s = row.at("settings");
  const auto apart = s.at("engine_nodes").get<int>();
  Json engine{{"max_model_len", kLimit},
              {"tensor_parallel_size", s.at("engine_tensor")},
              {"gpu_memory_utilization", s.at("gpu_memory_utilization")}};
  Json generation{{"vllm_cfg", std::move(engine)}, {"colocated", {{"enabled", apart == 0}}}};
  if (apart > 0)
    generation["colocated"]["resources"] = {{"num_nodes", apart},
                                            {"gpus_per_node", s.at("gpus_per_node")}};
  const bool divided = s.at("tensor") != 1;
  Json policy{{"model_name", row.at("model")},
              {"train_global_batch_size", s.at("train_global_batch_size")},
              {"train_micro_batch_size", kLimit / row.at("mean_length").get<int>()},
              {"logprob_batch_size", s.at("logprob_batch_size")},
              {"max_total_sequence_length",
               round_up(row.at("mean_length").get<std::int64_t>(), s.at("tensor"))},
              {"dtensor_cfg", {{"enabled", false}}},
              {"sequence_packing",
               {{"enabled", true},
                {"train_mb_tokens", kLimit},
                {"logprob_mb_tokens", s.at("logprob_batch_size").get<int>() * kLimit}}},
              {"megatron_cfg",
               {{"enabled", true},
                {"tensor_model_parallel_size", s.at("tensor")},
                {"sequence_parallel", divided},
                {"expert_model_parallel_size", s.at("expert")},
                {"pipeline_model_parallel_size", s.at("pipeline")}}},
              {"generation", std::move(generation)}};
  return Json{
      {"defaults", "grpo_math_1B.yaml"},
      {"grpo",
       {{"num_prompts_per_step", 64},
        {"num_generations_per_prompt", 32},
        {"async_grpo",
         {{"enabled", s.at("steps_off") != 0},
          {"max_trajectory_age_steps", s.at("steps_off")},
          {"in_flight_weight_updates", true}}}}},
      {"cluster", {{"num_nodes", s.at("num_nodes")}, {"gpus_per_node", s.at("gpus_per_node")}}},
      {"policy", std::move(policy)}}
      .dump();
}

/// Answers end by themselves, in the mean as long as the page says and at the recipe's limit at
/// most.
Estimate estimate_of(const Json& row) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  Json job = importing::import_documents(importing::parse_documents(recipe_of(row), "recipe.yaml"),
                                         "nemo_rl", {{"cluster", row.at("gpu")}})
                 .job;
  Json& workload = job["workload"];
  workload["rollout"]["longest_answer"] = kLimit - workload.at("prompt_length").get<int>();
  return estimate_rlhf(*load_job(job, "job.json", {.hardware = &hardware, .directory = ""}).rlhf,
                       calibration);
}

TEST(PublishedNemoRl, WhatRanIsNotSaidNotToFit) {
  for (const Json& row : table().at("rows")) {
    const Estimate e = estimate_of(row);
    const auto recipe = row.at("recipe").get<std::string>();
    RecordProperty(recipe, std::to_string(e.device.point >> 20) + " of " +
                               std::to_string(e.usable_bytes >> 20) + " MiB, " +
                               std::to_string(e.time.step_seconds) + " s");
    EXPECT_NE(e.verdict.gpu.fit, Fit::does_not_fit) << recipe << ": " << e.device.point;
  }
}

/// Estimated seconds of a step over published ones.
struct Ratio {
  double value = 0;
  bool missed = false;  ///< docs/evidence/measurements.md, "NeMo RL's performance summary"
};

/// Of trainers and engines on the same GPUs, or `apart`.
std::vector<Ratio> ratios(bool apart) {
  std::vector<Ratio> all;
  for (const Json& row : table().at("rows")) {
    if ((row.at("settings").at("engine_nodes") != 0) != apart) continue;
    const TimeEstimate time = estimate_of(row).time;
    all.push_back(
        {time.step_seconds / row.at("step_seconds").get<double>(), row.contains("missed")});
    const auto word = [&](const char* key) { return row.at(key).get<std::string>(); };
    std::cout << fmt::format("{} {} {}: {:.1f} s, {:.2f}\n", word("version"), word("recipe"),
                             word("gpu"), time.step_seconds, all.back().value);
  }
  return all;
}

// Of trainer and engine on the same GPUs, whose times are added. All are too fast: what judges
// answers, hands batches out and waits for the longest answer is not in them.
TEST(PublishedNemoRl, StepsAreFasterThanPublished) {
  for (const Ratio& ratio : ratios(false)) {
    EXPECT_GT(ratio.value, ratio.missed ? 0 : 0.5);
    EXPECT_LT(ratio.value, ratio.missed ? 0.5 : 1.0);
  }
}

// Of engines on GPUs of their own that go on while the trainer trains.
TEST(PublishedNemoRl, StepsOfTwoGroupsOfGpusAreFasterThanPublished) {
  double error = 0;
  const std::vector<Ratio> all = ratios(true);
  ASSERT_EQ(all.size(), 9U);
  for (const Ratio& ratio : all) {
    EXPECT_GT(ratio.value, 0.5);
    EXPECT_LT(ratio.value, 1.0);
    error += std::abs(ratio.value - 1) / static_cast<double>(all.size());
  }
  EXPECT_LT(error, 0.3);
}

}  // namespace
}  // namespace shardplan::published_nemo_rl_test
