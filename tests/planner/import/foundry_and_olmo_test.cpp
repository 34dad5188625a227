// LLM Foundry's and OLMo's configurations, which both train under FSDP1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "import_testing.h"

namespace shardplan::importing::foundry_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kFoundry = R"(
variables: {max_seq_len: 2048}
max_seq_len: ${variables.max_seq_len}
model:
  name: mpt_causal_lm
  d_model: 2048
  n_heads: 16
  n_layers: 24
  expansion_ratio: 4
  vocab_size: 50368
  max_seq_len: ${variables.max_seq_len}
  attn_config: {attn_impl: flash}
train_loader: {name: text, dataset: {max_seq_len: 2048}}
optimizer: {name: decoupled_adamw, lr: 2.0e-4}
algorithms: {gradient_clipping: {clipping_type: norm, clipping_threshold: 1.0}}
global_train_batch_size: 256
device_train_microbatch_size: 4
precision: amp_bf16
fsdp_config:
  sharding_strategy: FULL_SHARD
  mixed_precision: PURE
  activation_checkpointing: true
  limit_all_gathers: true
)";

constexpr const char* kOlmo = R"(
model:
  d_model: 4096
  n_heads: 32
  n_layers: 32
  mlp_hidden_size: 22016
  weight_tying: false
  rope: true
  attention_dropout: 0.0
  attention_layer_norm: true
  norm_after: true
  include_bias: false
  layer_norm_type: rms
  residual_dropout: 0.0
  embedding_dropout: 0.0
  max_sequence_length: 4096
  vocab_size: 100278
  embedding_size: 100352
optimizer: {name: adamw}
global_train_batch_size: 1024
device_train_microbatch_size: 2
precision: amp_bf16
max_grad_norm: 1.0
activation_checkpointing: one_in_four
softmax_auxiliary_loss: true
fused_loss: true
fsdp: {wrapping_strategy: by_block_and_size, precision: mixed}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LlmFoundry, RunsMptUnderFsdp1) {
  const Json job = job_of(kFoundry);
  EXPECT_EQ(job["model"]["n_embd"], 2048);
  EXPECT_EQ(job["model"]["n_inner"], 8192);
  EXPECT_EQ(job["model"]["resid_pdrop"], 0.0) << "GPT-2's own default is 0.1";
  const Json& f = job["framework"];
  EXPECT_EQ(f["name"], "fsdp1");
  EXPECT_EQ(f["backward_prefetch"], "post");
  EXPECT_EQ(f["use_orig_params"], true);
  EXPECT_FALSE(f.contains("reduce_dtype")) << "PURE";
  EXPECT_EQ(job["checkpointing"], "full");
  EXPECT_EQ(job["precision"], "bf16-autocast");
  EXPECT_EQ(job["optimizer"]["implementation"], "for-loop");
  EXPECT_EQ(job["gradient_clipping"], 1.0);
  EXPECT_EQ(job["workload"]["sequence_length"], 2048);
  EXPECT_EQ(job["workload"]["gradient_accumulation"], 8) << "256 over 8 × 4";
}

TEST(LlmFoundry, CutsAMicroBatchToTheGpusPart) {
  const Json job =
      job_of(with(kFoundry, "global_train_batch_size: 256", "global_train_batch_size: 16"));
  EXPECT_EQ(job["workload"]["micro_batch"], 2);
  EXPECT_EQ(job["workload"]["gradient_accumulation"], 1);
}

TEST(LlmFoundry, ReducesInFp32UnlessTold) {
  const Json job = job_of(with(kFoundry, "  mixed_precision: PURE\n", ""));
  EXPECT_EQ(job["framework"]["reduce_dtype"], "fp32");
}

TEST(LlmFoundry, TakesTransformersModelsWithAdapters) {
  const std::string text =
      with(kFoundry, "  name: mpt_causal_lm\n",
           "  name: hf_causal_lm\n  pretrained_model_name_or_path: meta-llama/Llama-3.1-8B\n"
           "  peft_config: {peft_type: LORA, r: 64, target_modules: [q_proj]}\n");
  const Json job = job_of(text);
  EXPECT_EQ(job["model"], "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(job["workload"]["lora"]["rank"], 64);
}

TEST(LlmFoundry, IsReadInAJobOfThePlatform) {
  std::string inner = kFoundry, text = "name: run\ncompute: {gpus: 8}\nparameters:\n";
  for (std::size_t begin = 1; begin < inner.size();) {
    const std::size_t end = inner.find('\n', begin);
    text += "  " + inner.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  const Imported imported = import_text(text);
  EXPECT_EQ(imported.job["workload"]["sequence_length"], 2048);
  EXPECT_TRUE(noted(imported, Note::Kind::took, "parameters.device_train_microbatch_size"));
}

TEST(LlmFoundry, RefusesByKeyAndLine) {
  EXPECT_THAT(error_of(with(kFoundry, "device_train_microbatch_size: 4",
                            "device_train_microbatch_size: auto")),
              AllOf(HasSubstr("line 17"), HasSubstr("device_train_microbatch_size"),
                    HasSubstr("--micro-batch")));
  EXPECT_THAT(error_of(with(kFoundry, "attn_impl: flash", "rope: true")),
              HasSubstr("model.attn_config.rope"));
  EXPECT_THAT(error_of(with(kFoundry, "mixed_precision: PURE", "mixed_precision: FULL")),
              HasSubstr("fsdp_config.mixed_precision"));
  EXPECT_THAT(error_of(with(kFoundry, "limit_all_gathers", "limit_gathers")),
              HasSubstr("fsdp_config.limit_gathers"));
  EXPECT_THAT(error_of(with(kFoundry, "max_seq_len: ${variables.max_seq_len}\nmodel", "model")),
              HasSubstr("max_seq_len: missing"));
}

TEST(Olmo, HasOlmo2sLayers) {
  const Json job = job_of(kOlmo);
  EXPECT_EQ(job["model"]["model_type"], "olmo2");
  EXPECT_EQ(job["model"]["intermediate_size"], 11008) << "swiglu halves";
  EXPECT_EQ(job["model"]["vocab_size"], 100352);
  EXPECT_EQ(job["framework"]["reduce_dtype"], "fp32");
  EXPECT_EQ(job["checkpointing"]["policy"], "blocks");
  EXPECT_EQ(job["checkpointing"]["every"], 4);
  EXPECT_EQ(job["workload"]["sequence_length"], 4096);
  EXPECT_EQ(job["workload"]["gradient_accumulation"], 64) << "1024 over 8 × 2";
}

TEST(Olmo, OfTheFirstHasLayerNormsBeforeLayers) {
  std::string text = with(kOlmo, "  norm_after: true\n", "");
  text = with(text, "attention_layer_norm: true", "attention_layer_norm: false");
  EXPECT_EQ(job_of(text)["model"]["model_type"], "llama");
  text = with(text, "layer_norm_type: rms", "layer_norm_type: default");
  EXPECT_EQ(job_of(text)["model"]["model_type"], "stablelm");
}

TEST(Olmo, RefusesWhatKeepsMore) {
  EXPECT_THAT(error_of(with(kOlmo, "  residual_dropout: 0.0\n", "")),
              AllOf(HasSubstr("model.residual_dropout"), HasSubstr("0.1")));
  EXPECT_THAT(error_of(with(kOlmo, "fused_loss: true", "fused_loss: false")),
              HasSubstr("softmax_auxiliary_loss"));
  EXPECT_THAT(error_of(with(kOlmo, "wrapping_strategy: by_block_and_size, ", "")),
              HasSubstr("wrapping_strategy: without one"));
  EXPECT_THAT(error_of(with(kOlmo, "precision: amp_bf16\n", "")),
              HasSubstr("precision: missing, at which OLMo stops"));
  EXPECT_THAT(error_of(with(kOlmo, "weight_tying: false", "clip_qkv: 8.0")),
              HasSubstr("model.clip_qkv"));
}

}  // namespace
}  // namespace shardplan::importing::foundry_test
