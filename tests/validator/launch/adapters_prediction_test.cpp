// Jobs with adapters: core's native lowering beside a dry run of the engine.
#include "validator/launch/prediction.h"

namespace shardplan::validator::adapters_prediction_test {
namespace {

using namespace testing;

/// Some layers of a matrix, all, and those whose inputs ranks that share layers divide.
constexpr const char* kTargets[] = {R"(["q_proj", "v_proj"])", R"(["all-linear"])",
                                    R"(["o_proj", "down_proj"])"};

class Adapters : public ::testing::TestWithParam<int> {};

TEST_P(Adapters, are_predicted_to_the_byte) {
  for (const char* base : {"none", "nf4", "nf4_double"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const char* cluster : {"1xH200", "4xH200"}) {
        const auto what = fmt::format("{} on {}, {}", base, cluster, checkpointing);
        for (const char* model : {"llama-2-7b", "qwen2.5-0.5b", "qwen3-0.6b"})
          for (const char* targets : kTargets)
            expect_same(
                adapted(job(model, GetParam(), cluster, "bf16-master", checkpointing, 3, 1000, 2),
                        targets, base, 16),
                model + what + targets);
        expect_same(adapted(job("gpt2", GetParam(), cluster, "bf16-master", checkpointing, 4, 777),
                            R"(["c_attn", "c_proj"])", base, 7),
                    "gpt2" + what);
      }
}

TEST_P(Adapters, in_odd_shapes_are_predicted_to_the_byte) {
  const Json odd{{"model_type", "llama"},  {"hidden_size", 36},        {"intermediate_size", 50},
                 {"num_hidden_layers", 1}, {"num_attention_heads", 6}, {"num_key_value_heads", 3},
                 {"vocab_size", 131},      {"attention_bias", true},   {"mlp_bias", true}};
  for (const char* base : {"none", "nf4", "nf4_double"})
    for (const char* precision : {"fp32", "bf16-pure", "fp16-master"})
      for (const char* cluster : {"1xH200", "3xH200"})
        expect_same(adapted(job(odd, GetParam(), cluster, precision, "none", 3, 13),
                            R"(["k_proj", "up_proj", "gate_proj"])", base, 5),
                    fmt::format("{}, {} on {}", base, precision, cluster));
}
TEST_P(Adapters, beside_shared_sequences_are_predicted_to_the_byte) {
  for (const char* base : {"none", "nf4", "nf4_double"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const char* cluster : {"2xH200", "8xH200"}) {
        const auto what = fmt::format("{} on {}, {}", base, cluster, checkpointing);
        for (const char* targets : kTargets)
          expect_same(ringed(adapted(job("qwen3-0.6b", GetParam(), cluster, "bf16-master",
                                         checkpointing, 3, 1000, 2),
                                     targets, base, 16),
                             2),
                      what + targets);
        expect_same(ringed(adapted(job("gpt2", GetParam(), cluster, "fp32", checkpointing, 1, 776),
                                   R"(["c_attn", "c_proj"])", base, 7),
                           2),
                    "gpt2" + what);
      }
}

TEST_P(Adapters, with_states_on_the_host_are_predicted_to_the_byte) {
  for (const char* base : {"none", "nf4", "nf4_double"})
    for (const char* precision : {"fp32", "bf16-pure", "bf16-master"})
      for (const char* cluster : {"1xH200", "2x8xH200"})
        expect_same_offloaded(adapted(job("qwen3-0.6b", GetParam(), cluster, precision, "full", 3,
                                          776, precision[0] == 'f' ? 1 : 2),
                                      R"(["q_proj", "down_proj"])", base, 16),
                              fmt::format("{}, {} on {}", base, precision, cluster));
  expect_same_offloaded(
      ringed(adapted(job("llama-2-7b", GetParam(), "4xH200", "bf16-master", "full", 1, 4096, 2),
                     R"(["all-linear"])", "nf4_double", 64),
             2),
      "context 2");
}

TEST_P(Adapters, beside_shared_layers_of_4_bits_are_predicted_to_the_byte) {
  for (const char* base : {"nf4", "nf4_double"})
    for (const char* cluster : {"2xH200", "2x8xH200"})
      for (const char* checkpointing : {"none", "full"}) {
        const auto what = fmt::format("{} on {}, {}", base, cluster, checkpointing);
        for (const char* model : {"llama-2-7b", "qwen3-0.6b"})
          expect_same(shared(adapted(job(model, GetParam(), cluster, "bf16-master", checkpointing,
                                         4, 1000, 2),
                                     R"(["all-linear"])", base, 16),
                             2),
                      model + what);
        expect_same(ringed(adapted(job("gpt2", GetParam(), "8xH200", "fp32", checkpointing, 1, 776),
                                   R"(["c_attn"])", base, 7),
                           2, 4),
                    "gpt2" + what);
        expect_same_offloaded(shared(adapted(job("qwen3-0.6b", GetParam(), cluster, "bf16-master",
                                                 checkpointing, 3, 776),
                                             R"(["q_proj"])", base, 16),
                                     2),
                              what + ", states on the host");
      }
}

TEST_P(Adapters, beside_shared_layers_are_predicted_to_the_byte) {
  for (const char* model : {"llama-2-7b", "qwen3-0.6b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const char* cluster : {"2xH200", "2x8xH200"})
        for (const char* targets : kTargets)
          expect_same(shared(adapted(job(model, GetParam(), cluster, "bf16-master", checkpointing,
                                         4, 1000, 2),
                                     targets, "none", 16),
                             2),
                      fmt::format("{} on {}, {}, {}", model, cluster, checkpointing, targets));
  for (const char* precision : {"fp32", "bf16-pure", "fp16-master"}) {
    expect_same(ringed(adapted(job("gpt2", GetParam(), "8xH200", precision, "selective", 1, 776),
                               R"(["c_attn", "c_proj"])", "none", 7),
                       2, 4),
                precision);
    expect_same(shared(adapted(job("llama-2-7b", GetParam(), "8xH200", precision, "none", 3, 776),
                               R"(["k_proj", "up_proj"])", "none", 5),
                       8),
                precision);
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, Adapters, ::testing::Values(0, 1, 2, 3));

class AdaptersOnStages : public ::testing::TestWithParam<int> {};

TEST_P(AdaptersOnStages, are_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-2-7b", "qwen3-0.6b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const char* base : {"none", "nf4_double"})
        for (const std::int64_t stages : {2, 4}) {
          const char* targets =
              std::string(model) == "gpt2" ? R"(["c_attn", "c_proj"])" : kTargets[stages / 2 - 1];
          const Json whole =
              adapted(job(model, GetParam(), "8xH200", "bf16-master", checkpointing, 2, 1000, 8),
                      targets, base, 16);
          const std::string what =
              fmt::format("{}, {}, {} × {}", model, checkpointing, base, stages);
          expect_same_of_stages(staged(whole, stages, "gpipe"), what + ", gpipe");
          expect_same_of_stages(staged(whole, stages, "1f1b"), what + ", 1f1b");
          if (stages == 2)
            expect_same_of_stages(staged(whole, 2, "interleaved", 2), what + ", interleaved");
          expect_same_of_stages(staged(whole, 2, "1f1b", 1, 2), what + ", tensor 2");
          Json ring = staged(whole, 2, "1f1b");
          ring["parallel"]["context"] = 4;
          expect_same_of_stages(ring, what + ", context 4");
        }
}

INSTANTIATE_TEST_SUITE_P(Zero, AdaptersOnStages, ::testing::Values(0, 1));

TEST_P(Adapters, with_what_blocks_keep_on_the_host_are_predicted_to_the_byte) {
  for (const char* checkpointing : {"none", "selective", "full"})
    expect_same(sent(adapted(job("qwen2.5-0.5b", GetParam(), "4xH200", "bf16-master", checkpointing,
                                 3, 1000),
                             R"(["q_proj", "v_proj"])", "nf4", 16)),
                checkpointing);
}

TEST_P(Adapters, beside_experts_are_predicted_to_the_byte) {
  for (const char* model : {"mixtral-8x7b-v0.1", "qwen3-30b-a3b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const char* cluster : {"1xH200", "4xH200"})
        for (const std::int64_t experts : {1, 4})
          for (const char* base : {"none", "nf4", "nf4_double"}) {
            if (experts > 1 && std::string(cluster) == "1xH200") continue;
            Json document =
                adapted(job(model, GetParam(), cluster, "bf16-master", checkpointing, 2, 1000, 2),
                        R"(["all-linear"])", base, 16);
            document["parallel"]["expert"] = experts;
            expect_same(document,
                        fmt::format("{} on {}, {}, {}", model, cluster, checkpointing, base));
          }
}

TEST_P(Adapters, of_experts_are_predicted_to_the_byte) {
  constexpr const char* kBoth = R"(["experts.gate_up_proj", "experts.down_proj"])";
  for (const double factor : {0.0, 1.25})
    for (const std::int64_t ranks : {1, 2, 4})
      for (const char* base : {"none", "nf4", "nf4_double"})
        for (const char* checkpointing : {"none", "selective", "full"}) {
          const auto what = fmt::format("{} of 4, {}, {}, {}", ranks, factor, base, checkpointing);
          const auto of = [&](const Json& model, const char* targets, const char* parameters) {
            return divided(adapted_experts(adapted(job(model, GetParam(), "4xH200", "bf16-master",
                                                       checkpointing, 2, 80, 2),
                                                   targets, base, 5),
                                           parameters),
                           ranks, factor);
          };
          expect_same(of(mixtral(8, 2), R"(["all-linear"])", kBoth), "mixtral, " + what);
          expect_same(of(qwen3_moe(), R"(["o_proj"])", R"(["experts.gate_up_proj"])"),
                      "qwen3_moe, " + what);
          if (std::string(base) == "none")
            expect_same(of(mixtral(4, 3), "[]", R"(["down_proj"])"), "experts alone, " + what);
          if (std::string(base) != "none") {
            const Json both = quantized_experts(of(mixtral(8, 2), R"(["q_proj"])", kBoth));
            expect_same(both, "mixtral of 4 bits, " + what);
            expect_same(quantized_experts(of(qwen3_moe(), R"(["q_proj"])", "[]")),
                        "qwen3_moe of 4 bits, " + what);
            expect_same(narrowed(both, "fp8-tensorwise"), "mixtral of 4 bits, fp8, " + what);
            if (factor > 0 && std::string(checkpointing) == "none")
              expect_same_offloaded(both, "mixtral of 4 bits, " + what);
          }
          if (factor > 0) continue;
          expect_same(sent(of(mixtral(8, 2), R"(["q_proj"])", kBoth)),
                      what + ", what blocks keep on the host");
          if (std::string(checkpointing) == "full")
            expect_same_offloaded(of(mixtral(8, 2), R"(["all-linear"])", kBoth), what);
          expect_same(narrowed(of(mixtral(8, 2), R"(["all-linear"])", kBoth), "fp8-rowwise"),
                      what + ", fp8");
        }
  for (const char* model : {"mixtral-8x7b-v0.1", "qwen3-30b-a3b"})
    expect_same(divided(adapted_experts(adapted(job(model, GetParam(), "8xH200", "bf16-master",
                                                    "full", 2, 1000),
                                                R"(["all-linear"])", "none", 16),
                                        kBoth),
                        4, 0),
                model);
}

TEST(AdaptersRefused, beside_what_they_do_not_go_with) {
  const auto refused = [](Json document, const char* key) {
    try {
      compare(document);
      FAIL() << key;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    }
  };
  const Json plain = adapted(job("llama-3.2-1b", 0, "4xH200", "bf16-master", "none", 1, 512),
                             R"(["q_proj"])", "none", 8);
  const auto with = [&](const char* block, const char* key, const Json& value) {
    Json document = plain;
    (std::string(block) == "lora" ? document["workload"]["lora"] : document[block])[key] = value;
    return document;
  };
  refused(with("lora", "dropout", 0.1), "dropout");
  refused(with("lora", "dora", true), "dora");
  refused(with("lora", "quantization", "int8"), "quantization");
  refused(with("lora", "modules_to_save", {"lm_head"}), "modules_to_save");
  refused(with("lora", "targets", {"embed_tokens"}), "targets");
  refused(with("lora", "quantize_experts", true), "quantize_experts");
}

}  // namespace
}  // namespace shardplan::validator::adapters_prediction_test
