// What the package flash-attn 2 holds beside PyTorch's fused attention, and where it does not run.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::flash_attn_test {
namespace {

constexpr int kLayers = 24, kTokens = 4096;

Job job_of(const Json& model, const char* kernel, Json more = Json::object()) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job{
      {"model", model},           {"cluster", "1xH100"},
      {"precision", "bf16-pure"}, {"checkpointing", "none"},
      {"sdpa_kernel", kernel},    {"workload", {{"micro_batch", 1}, {"sequence_length", kTokens}}}};
  job.update(more);
  return load_job(job, "job.json", {.hardware = &hardware});
}

std::int64_t allocated(const Json& model, const char* kernel) {
  static const Calibration calibration = load_calibration();
  const Job job = job_of(model, kernel);
  return estimate(job.model, job.plan, calibration).allocated.point;
}

/// Queries of 16 heads of 64; keys and values of two.
Json mistral(const Json& window) {
  return {{"model_type", "mistral"},
          {"hidden_size", 1024},
          {"intermediate_size", 2048},
          {"num_hidden_layers", kLayers},
          {"num_attention_heads", 16},
          {"num_key_value_heads", 2},
          {"head_dim", 64},
          {"vocab_size", 1000},
          {"sliding_window", window},
          {"max_position_embeddings", 8192}};
}

TEST(FlashAttn, TakesWindowsWithoutAMask) {
  const Json all = mistral(nullptr), window = mistral(1024);
  for (const char* kernel : {"cudnn_attention", "flash_attention", "flash_attn"})
    EXPECT_EQ(allocated(all, kernel), allocated(all, "cudnn_attention")) << kernel;
  EXPECT_EQ(allocated(window, "flash_attn"), allocated(all, "flash_attn"));
  // PyTorch's keeps a mask in bf16, and keys and values repeated to all heads, in each layer.
  const std::int64_t mask = 2LL * kTokens * kTokens;
  const std::int64_t repeated = 2LL * 2 * kTokens * 14 * 64;
  EXPECT_GE(allocated(window, "flash_attention") - allocated(all, "flash_attention"),
            kLayers * (mask + repeated));
}

// transformers fills values up to the width of queries and keeps them so; the kernel's result too.
TEST(FlashAttn, FillsUpNarrowValues) {
  const int heads = 16, nope = 64, rope = 64, value = 64;
  const Json latent{{"model_type", "deepseek_v3"},
                    {"hidden_size", 1024},
                    {"intermediate_size", 2048},
                    {"num_hidden_layers", kLayers},
                    {"num_attention_heads", heads},
                    {"num_key_value_heads", heads},
                    {"q_lora_rank", 256},
                    {"kv_lora_rank", 128},
                    {"qk_nope_head_dim", nope},
                    {"qk_rope_head_dim", rope},
                    {"v_head_dim", value},
                    {"vocab_size", 1000},
                    {"first_k_dense_replace", kLayers}};
  const std::int64_t row = 2LL * kTokens * heads;  // bytes of one channel of all heads
  // Values and result of 128 channels in the place of 64, without the expanded rows of both.
  const std::int64_t more = row * (2 * (nope + rope) - (nope + value) - value);
  const std::int64_t grown = allocated(latent, "flash_attn") - allocated(latent, "cudnn_attention");
  EXPECT_GE(grown, kLayers * more);
  EXPECT_LE(grown, kLayers * more + 4 * row * (nope + rope));
}

std::string warning(const Json& model, const Json& more) {
  for (const Diagnostic& d : job_of(model, "flash_attn", more).diagnostics)
    if (d.key == "sdpa_kernel") return to_string(d);
  return "none";
}

TEST(FlashAttn, IsSaidNotToRunWhereItDoesNot) {
  using ::testing::HasSubstr;
  const Json model = mistral(nullptr);
  EXPECT_EQ(warning(model, Json::object()), "none");
  EXPECT_EQ(warning(model, {{"precision", "bf16-autocast"}}), "none");
  EXPECT_THAT(warning(model, {{"precision", "fp32"}}), HasSubstr("bf16 and fp16 alone"));
  EXPECT_THAT(warning(model, {{"cluster", "1xV100-32GB"}, {"precision", "fp16-autocast"}}),
              HasSubstr("wants Ampere or a newer GPU"));
  EXPECT_EQ(warning(model, {{"cluster", "1xA100-80GB"}}), "none");
  EXPECT_THAT(warning("t5-large", Json::object()), HasSubstr("does not run t5"));
  EXPECT_EQ(warning(model, {{"precision", "fp32"}, {"attention", "eager"}}), "none");
}

}  // namespace
}  // namespace shardplan::flash_attn_test
