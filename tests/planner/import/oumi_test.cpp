// oumi's configurations: blocks that become transformers' and TRL's arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "import_testing.h"

namespace shardplan::importing::oumi_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kAdapters = R"(
model:
  model_name: meta-llama/Llama-3.1-8B-Instruct
  model_max_length: 4096
  torch_dtype_str: bfloat16
  attn_implementation: sdpa
data:
  train:
    pack: true
    datasets: [{dataset_name: own}]
training:
  trainer_type: TRL_SFT
  use_peft: true
  per_device_train_batch_size: 2
  gradient_accumulation_steps: 4
  enable_gradient_checkpointing: true
  optimizer: adamw_torch_fused
  trainer_kwargs: {max_seq_length: "${model.model_max_length}"}
  output_dir: out
peft:
  q_lora: true
  bnb_4bit_quant_type: nf4
  lora_target_modules: [q_proj, v_proj]
fsdp:
  enable_fsdp: true
  forward_prefetch: true
  auto_wrap_policy: TRANSFORMER_BASED_WRAP
  transformer_layer_cls: LlamaDecoderLayer
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

/// Without mixed precision accelerate leaves what FSDP trains as it was loaded; a preset's name
/// would be what it makes of it.
TEST(Oumi, ShardsTheTypeThatWasLoadedWithoutMixedPrecision) {
  const std::string whole = with(kAdapters, "use_peft: true", "use_peft: false");
  EXPECT_EQ(import_text(whole).job["precision"], (Json{{"params", "bf16"}}));
  const std::string mixed = with(whole, "use_peft: false", "mixed_precision_dtype: BF16");
  EXPECT_EQ(import_text(mixed).job["precision"], "bf16-autocast");
}

TEST(Oumi, HandsItsBlocksToTransformers) {
  const Imported imported = import_text(kAdapters);
  const Json& job = imported.job;
  EXPECT_EQ(job["model"], "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(job["trainer"], "trl");
  EXPECT_EQ(job["precision"], "bf16-pure");
  EXPECT_EQ(job["checkpointing"], "full");
  const Json& w = job["workload"];
  EXPECT_EQ(w["micro_batch"], 2);
  EXPECT_EQ(w["gradient_accumulation"], 4);
  EXPECT_EQ(w["sequence_length"], 4096);
  EXPECT_EQ(w["packing"], true);
  EXPECT_EQ(w["lora"]["quantization"], "nf4");
  EXPECT_EQ(w["lora"]["rank"], 8) << "peft_params.py";
  EXPECT_EQ(job["optimizer"]["implementation"], "fused");
  EXPECT_EQ(job["framework"]["name"], "fsdp1");
  EXPECT_EQ(job["framework"]["use_orig_params"], false) << "flat tensors apart under PEFT";
  EXPECT_EQ(job["framework"]["backward_prefetch"], "pre");
  EXPECT_TRUE(noted(imported, Note::Kind::took, "training.per_device_train_batch_size"));
}

TEST(Oumi, HasDefaultsOfItsOwn) {
  const Json job = job_of(
      "model: {model_name: gpt2, model_max_length: 512}\ntraining: {trainer_type: TRL_SFT}\n"
      "peft: {lora_r: 4, q_lora: true}\n");
  EXPECT_EQ(job["workload"]["micro_batch"], 8);
  EXPECT_FALSE(job["workload"].contains("lora")) << "use_peft is off";
  EXPECT_EQ(job["checkpointing"], "none");
  EXPECT_EQ(job["optimizer"]["implementation"], "foreach");
  EXPECT_EQ(job["precision"], "fp32") << "bf16 is false where TRL alone would take it";
  EXPECT_EQ(job["framework"]["name"], "ddp");
  const Json fp4 = job_of(with(kAdapters, "  bnb_4bit_quant_type: nf4\n", ""));
  EXPECT_EQ(fp4["workload"]["lora"]["quantization"], "fp4");
}

TEST(Oumi, WritesADeepSpeedConfiguration) {
  const Json job = job_of(
      "model: {model_name: gpt2, model_max_length: 512, torch_dtype_str: float32}\n"
      "training: {trainer_type: HF, mixed_precision_dtype: BF16}\n"
      "deepspeed: {enable_deepspeed: true, zero_stage: ZERO_3, precision: BF16,\n"
      "  offload_optimizer: {device: CPU}, stage3_prefetch_bucket_size: auto}\n");
  const Json& zero = job["framework"]["ds_config"]["zero_optimization"];
  EXPECT_EQ(zero["stage"], 3);
  EXPECT_EQ(zero["reduce_bucket_size"], 500'000'000);
  EXPECT_EQ(zero["stage3_prefetch_bucket_size"], "auto");
  EXPECT_EQ(zero["offload_optimizer"]["device"], "cpu");
  EXPECT_EQ(job["precision"], "bf16-master");
}

TEST(Oumi, PrefersByTrlsTrainers) {
  const Json dpo = job_of(with(kAdapters, "TRL_SFT", "TRL_DPO"));
  EXPECT_EQ(dpo["workload"]["kind"], "rlhf");
  EXPECT_EQ(dpo["workload"]["algorithm"], "dpo");
  const Json grpo = job_of(
      "model: {model_name: qwen2.5-1.5b, torch_dtype_str: bfloat16}\n"
      "training: {trainer_type: TRL_GRPO, per_device_train_batch_size: 4,\n"
      "  grpo: {use_vllm: true, max_completion_length: 256, num_generations: 4}}\n");
  EXPECT_EQ(grpo["workload"]["new_tokens"], 256);
  EXPECT_EQ(grpo["workload"]["rollout"]["gpu_memory_utilization"], 0.9) << "grpo_params.py";
}

TEST(Oumi, RefusesByKeyAndLine) {
  EXPECT_THAT(error_of(with(kAdapters, "TRL_SFT", "VERL_GRPO")),
              AllOf(HasSubstr("line 12"), HasSubstr("training.trainer_type"), HasSubstr("verl")));
  EXPECT_THAT(error_of(with(kAdapters, "use_peft: true",
                            "use_peft: true\n  bogus: 1\n"
                            "  optimiser: sgd")),
              HasSubstr("did you mean 'optimizer'"));
  EXPECT_THAT(error_of(with(kAdapters, "forward_prefetch", "foward_prefetch")),
              AllOf(HasSubstr("unknown key 'foward_prefetch'"), HasSubstr("forward_prefetch")));
  EXPECT_THAT(error_of(with(kAdapters, "  attn_implementation: sdpa",
                            "  model_kwargs: {num_hidden_layers: 4}")),
              HasSubstr("'num_hidden_layers' changes the network"));
  EXPECT_THAT(error_of("model: {model_name: gpt2}\ngeneration: {max_new_tokens: 4}\n"),
              HasSubstr("trains nothing"));
}

TEST(Oumi, IsNamedByACommand) {
  const std::vector<Document> command = parse_documents(
      "oumi distributed torchrun -m oumi train -c train.yaml "
      "--training.per_device_train_batch_size 1\n",
      "run.sh");
  ASSERT_EQ(command.size(), 2U);
  EXPECT_EQ(command.back().program, "oumi train");
  EXPECT_EQ(command.back().value.at("c"), "train.yaml");
}

}  // namespace
}  // namespace shardplan::importing::oumi_test
