// torchtune's recipes: what is made by "_component_".
#include <gmock/gmock.h>

#include "base/diagnostic.h"
#include "import_testing.h"

namespace shardplan::importing::torchtune_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kAdapters = R"(
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 4096
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  apply_lora_to_output: False
  lora_rank: 8
  lora_alpha: 16
  lora_dropout: 0.0
dataset: {_component_: torchtune.datasets.alpaca_cleaned_dataset, packed: True}
optimizer: {_component_: torch.optim.AdamW, fused: True, lr: 3e-4}
batch_size: 2
gradient_accumulation_steps: 8
clip_grad_norm: null
compile: True
dtype: bf16
enable_activation_checkpointing: True
enable_activation_offloading: True
)";

constexpr const char* kLoss =
    "loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}\n";

Imported imported(const std::string& text, const char* cluster, const char* file) {
  return import_text(text, {{"cluster", cluster}}, file);
}

TEST(Torchtune, ARecipeForOneGpuIsKnownByItsName) {
  const Imported found =
      imported(std::string(kAdapters) + kLoss, "1xH100", "8B_qlora_single_device.yaml");
  const Json& job = found.job;
  EXPECT_EQ(job.at("model"), "llama-3.1-8b");
  EXPECT_EQ(job.at("framework").at("name"), "single");
  EXPECT_EQ(job.at("precision"), "bf16-pure");
  EXPECT_EQ(job.at("checkpointing"), "full");
  EXPECT_EQ(job.at("activation_offloading"), "streams");
  EXPECT_EQ(job.at("compile"), Json({{"scope", "block"}}));
  EXPECT_EQ(job.at("gradient_clipping"), 0.0);
  EXPECT_EQ(job.at("optimizer"), Json({{"name", "adamw"}, {"implementation", "fused"}}));
  const Json& work = job.at("workload");
  EXPECT_EQ(work.at("sequence_length"), 4096);
  EXPECT_EQ(work.at("packing"), true);
  EXPECT_EQ(work.at("gradient_accumulation"), 8);
  EXPECT_EQ(work.at("lora").at("quantization"), "nf4_double");
  EXPECT_EQ(work.at("lora").at("targets"),
            Json({"q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}));
  EXPECT_TRUE(noted(found, Note::Kind::warning, "loss._component_"));
}

TEST(Torchtune, OthersAreFsdp2s) {
  const Imported found = imported(std::string(kAdapters) + kLoss + "fsdp_cpu_offload: True\n",
                                  "8xH100", "8B_qlora.yaml");
  EXPECT_EQ(found.job.at("framework"), Json({{"name", "fsdp2"}, {"cpu_offload", true}}));
  EXPECT_FALSE(found.job.contains("activation_offloading"));
  EXPECT_TRUE(noted(found, Note::Kind::warning, "enable_activation_offloading"));
}

TEST(Torchtune, BuildersAreNetworksOfTheCatalogue) {
  const auto model = [](const std::string& builder) {
    return job_of("model: {_component_: torchtune.models." + builder +
                  "}\nbatch_size: 1\noptimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit}\n")
        .at("model");
  };
  EXPECT_EQ(model("qwen2_5.qwen2_5_0_5b"), "qwen2.5-0.5b");
  EXPECT_EQ(model("qwen3.qwen3_8b_instruct"), "qwen3-8b");
  EXPECT_EQ(model("llama3_2_vision.llama3_2_vision_11b"), "llama-3.2-11b-vision");
  EXPECT_EQ(model("llama4.llama4_scout_17b_16e"), "llama-4-scout-17b-16e");
  EXPECT_EQ(model("phi4.phi4_14b"), "phi-4");
  EXPECT_EQ(model("gemma2.gemma2_27b"), "gemma-2-27b");
  EXPECT_THAT(error_of("model: {_component_: torchtune.models.llama2.llama2}\nbatch_size: 1\n"
                       "optimizer: {_component_: torch.optim.AdamW}\n"),
              AllOf(HasSubstr("model._component_"), HasSubstr("--model")));
}

TEST(Torchtune, PreferencesAreReadAndOtherProgramsAreRefused) {
  const Json dpo =
      job_of(std::string(kAdapters) + "loss: {_component_: torchtune.rlhf.loss.DPOLoss}\n");
  EXPECT_EQ(dpo.at("workload").at("algorithm"), "dpo");
  const std::string whole = std::string(kAdapters) + kLoss;
  EXPECT_THAT(error_of(whole + "quantizer: {_component_: torchtune.training.quantization.X}\n"),
              HasSubstr("QAT"));
  EXPECT_THAT(error_of(whole + "teacher_model: {_component_: torchtune.models.llama3.llama3_8b}\n"),
              HasSubstr("distillation"));
  EXPECT_THAT(
      error_of("model: {_component_: torchtune.models.llama3.llama3_8b}\nmax_new_tokens: 3\n"),
      HasSubstr("trains nothing"));
}

}  // namespace
}  // namespace shardplan::importing::torchtune_test
