// ms-swift's commands that start Megatron Core: its own defaults (megatron_args.py) and adapters.
#include <gmock/gmock.h>

#include "import_testing.h"

namespace shardplan::importing::megatron_swift_test {
namespace {

using testing::HasSubstr;

constexpr const char* kStart =
    "NPROC_PER_NODE=2 megatron sft --model Qwen/Qwen2.5-7B --max_length 2048 ";

TEST(MegatronSwift, TrainsAllParametersUnlessToldOtherwise) {
  const Json job = job_of(std::string(kStart) + "--micro_batch_size 1\n", {{"cluster", "2xH100"}});
  EXPECT_FALSE(job.at("workload").contains("lora"));
  EXPECT_EQ(job.at("precision"), "bf16-master");
  EXPECT_EQ(job.at("checkpointing"), "selective");
  EXPECT_EQ(job.at("framework").at("distributed_optimizer"), true);
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 8);  // 16 over 2 ranks
}

TEST(MegatronSwift, AdaptsJointLinearsByTheirParts) {
  const Json lora =
      job_of(std::string(kStart) + "--tuner_type lora --target_modules linear_qkv linear_fc2\n",
             {{"cluster", "2xH100"}})
          .at("workload")
          .at("lora");
  EXPECT_EQ(lora.at("targets"), Json({"q_proj", "k_proj", "v_proj", "down_proj"}));
  EXPECT_EQ(lora.at("rank"), 8);
  EXPECT_EQ(lora.at("dropout"), 0.05);
}

TEST(MegatronSwift, SaysWhatLoraKeysDoWithoutLora) {
  const Imported imported = import_text(
      std::string(kStart) + "--lora_rank 8 --target_modules all-linear\n", {{"cluster", "2xH100"}});
  EXPECT_FALSE(imported.job.at("workload").contains("lora"));
  EXPECT_TRUE(noted(imported, Note::Kind::ignored, "lora_rank"));
}

TEST(MegatronSwift, NeverReadsPreferencesAsPlainTraining) {
  const std::string command =
      "NPROC_PER_NODE=2 megatron rlhf --model Qwen/Qwen2.5-7B --max_length 2048 ";
  EXPECT_THAT(error_of(command + "--rlhf_type gkd\n", {{"cluster", "2xH100"}}),
              HasSubstr("rlhf_type: 'gkd' under Megatron-LM is not estimated"));
  const Json job = job_of(command + "--rlhf_type dpo\n", {{"cluster", "2xH100"}});
  EXPECT_EQ(job.at("workload").at("kind"), "rlhf");
  const Json adapted =
      job_of(command + "--rlhf_type dpo --tuner_type lora\n", {{"cluster", "2xH100"}});
  EXPECT_EQ(adapted.at("workload").at("reference"), "base");
}

TEST(MegatronSwift, GeneratesForGrpoInAnEngine) {
  const std::string command =
      "NPROC_PER_NODE=2 megatron rlhf --model Qwen/Qwen2.5-7B --max_length 2048 --rlhf_type grpo "
      "--tuner_type lora --global_batch_size 32 --micro_batch_size 2 --steps_per_generation 2 "
      "--vllm_mode colocate --vllm_gpu_memory_utilization 0.4 --sleep_level 2 "
      "--offload_model true ";
  const Json work =
      job_of(command + "--max_completion_length 1024\n", {{"cluster", "2xH100"}}).at("workload");
  EXPECT_EQ(work.at("algorithm"), "grpo");
  EXPECT_EQ(work.at("prompt_length"), 2048);
  EXPECT_EQ(work.at("new_tokens"), 1024);
  EXPECT_EQ(work.at("generation_batch"), 32);  // two steps of 32, over 2 ranks
  EXPECT_EQ(work.at("scoring_batch"), 2);
  EXPECT_EQ(work.at("reference"), "base");
  EXPECT_EQ(work.at("models").at("actor").at("idle"), "parameters");
  EXPECT_EQ(work.at("rollout").at("gpu_memory_utilization"), 0.4);
  EXPECT_EQ(work.at("rollout").at("sleep_level"), 2);
  const Json without = job_of(command + "--beta 0\n", {{"cluster", "2xH100"}}).at("workload");
  EXPECT_EQ(without.at("reference"), "none");
  EXPECT_EQ(without.at("new_tokens"), 512);
}

TEST(MegatronSwift, CountsTheLayersOfTheModelThatAFlagNames) {
  const std::string script =
      "NPROC_PER_NODE=4 megatron sft --model nobody/knows --max_length 2048 "
      "--pipeline_model_parallel_size 2 --decoder_last_pipeline_num_layers 23\n";
  const Json job = job_of(script, {{"cluster", "4xH100"}, {"model", "qwen3-30b-a3b"}});
  EXPECT_EQ(job.at("parallel").at("stage_layers"), Json({25, 23}));
  EXPECT_NE(error_of(script, {{"cluster", "4xH100"}}).find("layers are not"), std::string::npos);
}

TEST(MegatronSwift, CountsTheLayersOfTheModelForUnevenStages) {
  const Json job = job_of(
      "NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen3-30B-A3B --max_length 2048 "
      "--pipeline_model_parallel_size 2 --decoder_last_pipeline_num_layers 23\n",
      {{"cluster", "4xH100"}});
  EXPECT_EQ(job.at("parallel").at("stage_layers"), Json({25, 23}));
}

/// megatron_args.py, MegatronTunerMixin: tower and projector are frozen unless told otherwise.
TEST(MegatronSwift, FreezesTowersUnlessToldOtherwise) {
  const std::string command =
      "NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen2.5-VL-7B-Instruct --max_length 2048 "
      "--tensor_model_parallel_size 2 --sequence_parallel true ";
  const Json on{{"cluster", "4xH100"}};
  EXPECT_EQ(job_of(command + "\n", on).at("workload").at("frozen"), "tower_and_projector");
  const Imported trains = import_text(command + "--freeze_vit false --freeze_aligner false\n", on);
  EXPECT_EQ(trains.job.at("workload").at("frozen"), "nothing");
  EXPECT_TRUE(noted(trains, Note::Kind::warning, "vit_gradient_checkpointing"));
  EXPECT_EQ(job_of(command + "--language_model_only true\n", on).at("workload").at("images"), 0);
  EXPECT_THAT(error_of(command + "--freeze_llm true\n", on), HasSubstr("freeze_llm"));
}

TEST(MegatronSwift, AdaptsTheJointProjectionOfDeltaNets) {
  const Json lora =
      job_of(
          "NPROC_PER_NODE=2 megatron sft --model Qwen/Qwen3-Next-80B-A3B-Instruct --max_length "
          "2048 --expert_model_parallel_size 2 --tuner_type lora --target_modules in_proj "
          "out_proj\n",
          {{"cluster", "2xH100"}})
          .at("workload")
          .at("lora");
  EXPECT_EQ(lora.at("targets"), Json({"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a",
                                      "in_proj_qkvz", "in_proj_ba", "out_proj"}));
}

TEST(MegatronSwift, ReadsItsYaml) {
  const Json job = job_of(
      "model: Qwen/Qwen2.5-7B\ntuner_type: lora\nmax_length: 2048\nmicro_batch_size: 2\n"
      "global_batch_size: 8\ntensor_model_parallel_size: 2\nsequence_parallel: true\n"
      "recompute_granularity: full\nrecompute_method: uniform\nrecompute_num_layers: 1\n",
      {{"cluster", "4xH100"}});
  EXPECT_EQ(job.at("framework").at("name"), "megatron");
  EXPECT_EQ(job.at("parallel").at("tensor"), 2);
  EXPECT_EQ(job.at("checkpointing"), "full");
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 2);
}

}  // namespace
}  // namespace shardplan::importing::megatron_swift_test
