// Whole weights have the configuration of their network beside them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::validator::whole_config_test {
namespace {

class WholeConfig : public ::testing::Test {
 protected:
  std::string job(const Json& model, const char* precision) const {
    const Json job{
        {"model", model},
        {"cluster", "2xA100-40GB"},
        {"framework", {{"name", "native"}, {"zero_stage", 1}, {"device", "host"}}},
        {"workload", {{"micro_batch", 1}, {"sequence_length", 16}}},
        {"precision", precision},
        {"run",
         {{"steps", 2}, {"warmup", 0}, {"data", folder_.file("text", std::string(99, 'a'))}}}};
    return folder_.file("job.json", job.dump());
  }
  static Json told(const std::vector<std::string>& arguments) {
    const Finished r = run_program(SHARDPLAN_VALIDATE, arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.exit_code == 0 ? Json::parse(r.out) : Json();
  }
  Json saved(const std::string& job) const {
    return told({job, "--format", "json", "--save", folder_.path("a"), "--save-every", "1",
                 "--save-form", "whole"});
  }

  TemporaryFolder folder_;
  std::string weights_ = folder_.path("a") + "/step-1/weights";
};

Json tiny(const char* type) {
  return {{"model_type", type},     {"hidden_size", 32},        {"intermediate_size", 48},
          {"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"head_dim", 8},          {"vocab_size", 200},        {"max_position_embeddings", 64}};
}

TEST_F(WholeConfig, makes_the_network_that_the_weights_are_of) {
  const Json gpt2{{"model_type", "gpt2"}, {"n_embd", 32},      {"n_layer", 2},
                  {"n_head", 2},          {"vocab_size", 200}, {"n_positions", 64}};
  for (const Json& model : {gpt2, tiny("llama"), tiny("qwen3")}) {
    std::filesystem::remove_all(folder_.path("a"));
    const Json out = saved(job(model, "fp32"));
    ASSERT_TRUE(out.is_object());
    // A job that knows of the network what is in that folder alone.
    const Json again =
        told({job(weights_, "fp32"), "--format", "json", "--steps", "1", "--weights", weights_});
    ASSERT_TRUE(again.is_object());
    const auto loss = [](const Json& of, std::size_t step) {
      return of.at("record").at("steps").at(step).at("loss");
    };
    EXPECT_EQ(loss(again, 0), loss(out, 1)) << model.at("model_type");
    EXPECT_NE(loss(out, 0), loss(out, 1));
  }
}

TEST_F(WholeConfig, says_which_class_and_type_they_have) {
  Json model = tiny("qwen3");
  model["dtype"] = "float32";
  model["quantization_config"] = {{"bits", 4}};
  model["rms_norm_eps"] = 1e-5;
  ASSERT_TRUE(saved(job(model, "bf16-pure")).is_object());
  const Json config = read_json_file(weights_ + "/config.json");
  EXPECT_EQ(config.at("architectures"), Json::array({"Qwen3ForCausalLM"}));
  EXPECT_EQ(config.at("torch_dtype"), "bfloat16");
  EXPECT_FALSE(config.contains("dtype"));
  EXPECT_FALSE(config.contains("quantization_config"));
  EXPECT_EQ(config.at("rms_norm_eps"), 1e-5);
}

TEST_F(WholeConfig, of_adapters_says_what_peft_reads) {
  Json document = read_json_file(job(tiny("llama"), "fp32"));
  document["workload"]["method"] = "lora";
  document["workload"]["lora"] = {{"rank", 4}, {"targets", {"q_proj", "down_proj"}}};
  document["run"]["lora_alpha"] = 12;
  ASSERT_TRUE(saved(folder_.file("job.json", document.dump())).is_object());
  const Json config = read_json_file(weights_ + "/adapter_config.json");
  EXPECT_EQ(config.at("peft_type"), "LORA");
  EXPECT_EQ(config.at("r"), 4);
  EXPECT_EQ(config.at("lora_alpha"), 12);
  EXPECT_EQ(config.at("target_modules"), Json::array({"q_proj", "down_proj"}));
  EXPECT_FALSE(std::filesystem::exists(weights_ + "/config.json"));
}

}  // namespace
}  // namespace shardplan::validator::whole_config_test
