// What an engine cannot serve, and the figure that would do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rollout/engine.h"
#include "serving_testing.h"
#include "support/error_of.h"

namespace shardplan::serving_test {
namespace {

TEST(Serving, RefusesWhatAnEngineCannotDo) {
  const auto error = [](const Json& workload, const std::string& cluster = "4xH100-SXM5-80GB",
                        const Json& more = Json::object()) {
    return error_text([&] { served(workload, cluster, more); });
  };
  const auto degree_error = [&](int degree, const char* model, const char* cluster) {
    return error({{"engine", Json{{"tensor_parallel", degree}}}}, cluster, {{"model", model}});
  };
  EXPECT_NE(
      degree_error(3, "llama-3.1-8b", "4xH100-SXM5-80GB")
          .find("workload.engine.tensor_parallel: 3 does not divide the 32 heads; expected 2"),
      std::string::npos);
  EXPECT_NE(degree_error(8, "llama-3.1-8b", "4xH100-SXM5-80GB")
                .find("8 does not divide the 4 GPUs; expected 4"),
            std::string::npos);
  EXPECT_NE(
      degree_error(3, "qwen2.5-1.5b", "6xH100-SXM5-80GB")
          .find("3 neither divides the 2 key-value heads nor is a multiple of them; expected 2"),
      std::string::npos);
  // What the network's own split refuses has the engine's key too.
  EXPECT_NE(degree_error(6, "qwen2.5-1.5b", "6xH100-SXM5-80GB")
                .find("workload.engine.tensor_parallel: 6 ranks cannot divide a width of 256 "
                      "evenly; expected 2"),
            std::string::npos);
  EXPECT_NE(error({{"engine", Json{{"max_num_batched_tokens", 128}, {"max_num_seqs", 256}}}})
                .find("max_num_seqs"),
            std::string::npos);
  EXPECT_NE(error({{"shared_prefix", 2048}}).find("are the whole prompt"), std::string::npos);
  EXPECT_NE(error({{"engine", Json{{"max_model_length", 100}}}}).find("at least 2304"),
            std::string::npos);
  EXPECT_NE(error({{"engine", Json{{"engine", "vlm"}}}}).find("vllm"), std::string::npos);
  EXPECT_NE(error({}, "1xH100-SXM5-80GB", {{"framework", "single"}}).find("an engine serves"),
            std::string::npos);
}

TEST(Serving, SaysWhatAnEngineDoesNotStartWith) {
  const auto block = [](const char* engine, std::int64_t tokens) {
    return error_text([&] { served({{"engine", {{"engine", engine}, {"block_size", tokens}}}}); });
  };
  EXPECT_THAT(block("vllm", 7), testing::HasSubstr("a multiple of 16"));
  EXPECT_EQ(block("vllm", 32), "no error");
  EXPECT_EQ(block("sglang", 7), "no error");
  const auto warned = [](const Json& workload, const Json& model) {
    std::string all;
    for (const Diagnostic& d : served(workload, "1xH100-SXM5-80GB", {{"model", model}}).diagnostics)
      if (d.severity == Severity::warning) all += d.message.text + "\n";
    return all;
  };
  const Json long_one{{"prompt_length", 4096}};
  EXPECT_THAT(warned(long_one, "llama-2-7b"), testing::HasSubstr("VLLM_ALLOW_LONG_MAX_MODEL_LEN"));
  EXPECT_EQ(warned(long_one, "llama-3.1-8b"), "");
  const Json longest{{"engine", {{"max_model_length", 131073}}}};
  EXPECT_THAT(warned(longest, "llama-3.1-8b"), testing::HasSubstr("131072 positions"));
  // YaRN stretches the length that the model began with.
  Json config{{"model_type", "llama"},           {"hidden_size", 256},
              {"num_hidden_layers", 2},          {"num_attention_heads", 4},
              {"max_position_embeddings", 2048}, {"vocab_size", 512},
              {"intermediate_size", 512}};
  EXPECT_THAT(warned({}, config), testing::HasSubstr("2048 positions"));
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 2048}};
  EXPECT_EQ(warned({}, config), "");
}

}  // namespace
}  // namespace shardplan::serving_test
