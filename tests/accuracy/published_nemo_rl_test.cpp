// Runs of NeMo RL's performance summary (data/published/nemo_rl.json): each recipe's settings are
// imported, and what ran must not be said not to fit.
#include <gtest/gtest.h>

#include <string>

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

/// With samples as long as those it ran on, in rows and an engine of the recipe's limit.
std::string recipe_of(const Json& row) {
  constexpr int kLimit = 4096;
  const Json& s = row.at("settings");
  const auto apart = s.at("engine_nodes").get<int>();
  Json engine{{"max_model_len", kLimit},
              {"tensor_parallel_size", s.at("engine_tensor")},
              {"gpu_memory_utilization", s.at("gpu_memory_utilization")}};
  Json generation{{"vllm_cfg", std::move(engine)}, {"colocated", {{"enabled", apart == 0}}}};
  if (apart > 0)
    generation["colocated"]["resources"] = {{"num_nodes", apart},
                                            {"gpus_per_node", s.at("gpus_per_node")}};
  Json policy{{"model_name", "Qwen/Qwen3-30B-A3B"},
              {"train_global_batch_size", s.at("train_global_batch_size")},
              {"train_micro_batch_size", 1},
              {"logprob_batch_size", 2},
              {"max_total_sequence_length", row.at("mean_length")},
              {"dtensor_cfg", {{"enabled", false}}},
              {"sequence_packing",
               {{"enabled", true}, {"train_mb_tokens", kLimit}, {"logprob_mb_tokens", 2 * kLimit}}},
              {"megatron_cfg",
               {{"enabled", true},
                {"expert_model_parallel_size", s.at("expert")},
                {"pipeline_model_parallel_size", s.at("pipeline")}}},
              {"generation", std::move(generation)}};
  return Json{
      {"defaults", "grpo_math_1B.yaml"},
      {"grpo", {{"num_prompts_per_step", 64}, {"num_generations_per_prompt", 32}}},
      {"cluster", {{"num_nodes", s.at("num_nodes")}, {"gpus_per_node", s.at("gpus_per_node")}}},
      {"policy", std::move(policy)}}
      .dump();
}

Estimate estimate_of(const Json& row) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  const Json job =
      importing::import_documents(importing::parse_documents(recipe_of(row), "recipe.yaml"),
                                  "nemo_rl", {{"cluster", row.at("gpu")}})
          .job;
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

// Of trainer and engine on the same GPUs, whose times are added. Both are too fast: what judges
// answers, hands batches out and waits for the longest answer is not in them.
TEST(PublishedNemoRl, StepsAreFasterThanPublished) {
  for (const Json& row : table().at("rows")) {
    if (row.at("settings").at("engine_nodes") != 0) continue;
    const double ratio = estimate_of(row).time.step_seconds / row.at("step_seconds").get<double>();
    RecordProperty(row.at("recipe").get<std::string>(), std::to_string(ratio));
    EXPECT_GT(ratio, 0.5) << row.at("recipe");
    EXPECT_LT(ratio, 1.0) << row.at("recipe");
  }
}

}  // namespace
}  // namespace shardplan::published_nemo_rl_test
