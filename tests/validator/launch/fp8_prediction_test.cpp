// core's prediction of products in fp8 beside a dry run of the engine.
#include "validator/launch/prediction.h"

namespace shardplan::validator::fp8_prediction_test {
namespace {

using namespace testing;

constexpr const char* kRecipes[] = {"fp8-tensorwise", "fp8-rowwise"};

class Fp8Stage : public ::testing::TestWithParam<int> {};

TEST_P(Fp8Stage, of_products_in_fp8_is_predicted_to_the_byte) {
  for (const char* linear : kRecipes)
    for (const char* cluster : {"1xH200", "4xH200"}) {
      const auto what = fmt::format("{} on {}", linear, cluster);
      for (const char* model : {"gpt2", "llama-2-7b", "qwen2.5-0.5b", "qwen3-0.6b"})
        for (const char* checkpointing : {"none", "selective", "full"})
          expect_same(
              narrowed(job(model, GetParam(), cluster, "bf16-master", checkpointing, 3, 1008, 2),
                       linear),
              fmt::format("{}, {}, {}", what, model, checkpointing));
      expect_same(
          narrowed(job("llama-3.2-1b", GetParam(), cluster, "bf16-pure", "none", 1, 16), linear),
          what + ", pure");
      expect_same_offloaded(
          narrowed(job("llama-3.2-1b", GetParam(), cluster, "fp16-master", "full", 2, 512), linear),
          what);
      expect_same(sent(narrowed(
                      job("qwen3-0.6b", GetParam(), cluster, "bf16-master", "selective", 2, 512, 2),
                      linear)),
                  what + ", what blocks keep on the host");
    }
  for (const char* linear : kRecipes)
    expect_same(ringed(narrowed(job("llama-3.2-1b", GetParam(), "4xH200", "bf16-master",
                                    "selective", 1, 4096),
                                linear),
                       2),
                std::string(linear) + ", shared sequences");
}

TEST_P(Fp8Stage, of_shared_layers_in_fp8_is_predicted_to_the_byte) {
  for (const char* linear : kRecipes) {
    for (const std::int64_t tensor : {2, 4})
      for (const char* model : {"gpt2", "llama-2-7b", "llama-3.2-1b"})
        for (const char* checkpointing : {"none", "selective", "full"})
          expect_same(shared(narrowed(job(model, GetParam(), "8xH200", "bf16-master", checkpointing,
                                          3, 1008, 2),
                                      linear),
                             tensor),
                      fmt::format("{}, tensor {}, {}, {}", linear, tensor, model, checkpointing));
    const Json small =
        narrowed(job("qwen3-0.6b", GetParam(), "8xH200", "bf16-pure", "selective", 1, 64), linear);
    expect_same(ringed(small, 2, 2), fmt::format("{}, shared sequences", linear));
    expect_same(
        sent(shared(
            narrowed(job("qwen3-0.6b", GetParam(), "4xH200", "fp16-master", "none", 1, 64), linear),
            4)),
        fmt::format("{}, what blocks keep on the host", linear));
  }
}

TEST_P(Fp8Stage, of_adapters_over_fp8_is_predicted_to_the_byte) {
  for (const char* linear : kRecipes)
    for (const char* base : {"none", "nf4", "nf4_double"})
      for (const char* targets :
           {R"(["q_proj", "v_proj"])", R"(["all-linear"])", R"(["o_proj", "down_proj"])"})
        for (const char* checkpointing : {"none", "selective", "full"}) {
          const auto what = fmt::format("{}, {}, {}, {}", linear, base, targets, checkpointing);
          const Json plain = adapted(narrowed(job("qwen3-0.6b", GetParam(), "4xH200", "bf16-master",
                                                  checkpointing, 2, 1008, 2),
                                              linear),
                                     targets, base, 16);
          expect_same(plain, what);
          expect_same(sent(plain), what + ", what blocks keep on the host");
          if (std::string(targets) == R"(["all-linear"])") expect_same_offloaded(plain, what);
          expect_same(ringed(plain, 2), what + ", shared sequences");
          if (std::string(base) != "none") continue;
          expect_same(shared(plain, 2), what + ", tensor 2");
          expect_same(ringed(plain, 2, 2), what + ", shared sequences, tensor 2");
        }
}

TEST_P(Fp8Stage, of_experts_in_fp8_is_predicted_to_the_byte) {
  for (const char* linear : kRecipes)
    for (const double factor : {0.0, 0.3, 1.25})
      for (const std::int64_t ranks : {1, 2, 4}) {
        const auto what = fmt::format("{}, {} of 4, {}", linear, ranks, factor);
        const auto of = [&](const Json& model, const char* precision, const char* checkpointing,
                            std::int64_t batch, std::int64_t sequence) {
          return divided(narrowed(job(model, GetParam(), "4xH200", precision, checkpointing, batch,
                                      sequence, 2),
                                  linear),
                         ranks, factor);
        };
        for (const char* checkpointing : {"none", "selective", "full"}) {
          expect_same(of(mixtral(8, 2), "bf16-master", checkpointing, 3, 80),
                      fmt::format("mixtral, {}, {}", what, checkpointing));
          expect_same(of(qwen3_moe(), "bf16-pure", checkpointing, 1, 272),
                      fmt::format("qwen3_moe, {}, {}", what, checkpointing));
        }
        expect_same(sent(of(mixtral(4, 3), "fp16-master", "selective", 2, 24)),
                    what + ", what blocks keep on the host");
        expect_same_offloaded(of(mixtral(8, 2), "bf16-master", "full", 3, 80), what);
      }
  // Large enough for workspaces of its own.
  for (const char* linear : kRecipes)
    expect_same(divided(narrowed(job("mixtral-8x7b-v0.1", GetParam(), "8xH200", "bf16-pure", "full",
                                     2, 4096),
                                 linear),
                        8, 1.5),
                fmt::format("mixtral-8x7b, {}", linear));
}

INSTANTIATE_TEST_SUITE_P(Zero, Fp8Stage, ::testing::Values(0, 1, 2, 3));

class Fp8Pipeline : public ::testing::TestWithParam<int> {};

TEST_P(Fp8Pipeline, of_products_in_fp8_is_predicted_to_the_byte) {
  for (const char* linear : kRecipes)
    for (const char* checkpointing : {"none", "selective", "full"})
      expect_same_of_stages(staged(narrowed(job("llama-3.2-1b", GetParam(), "4xH200", "bf16-master",
                                                checkpointing, 2, 1024, 4),
                                            linear),
                                   2, "interleaved", 2),
                            fmt::format("{}, {}", linear, checkpointing));
}

TEST_P(Fp8Pipeline, of_shared_layers_and_adapters_is_predicted_to_the_byte) {
  for (const char* linear : kRecipes)
    for (const char* checkpointing : {"none", "selective", "full"}) {
      const Json plain = narrowed(
          job("llama-3.2-1b", GetParam(), "8xH200", "bf16-master", checkpointing, 2, 1024, 4),
          linear);
      const auto what = fmt::format("{}, {}", linear, checkpointing);
      expect_same_of_stages(staged(plain, 2, "1f1b", 1, 2), what);
      expect_same_of_stages(
          staged(adapted(plain, R"(["q_proj", "up_proj"])", "none", 8), 2, "interleaved", 2, 2),
          what + ", adapters");
    }
}

INSTANTIATE_TEST_SUITE_P(Zero, Fp8Pipeline, ::testing::Values(0, 1));

TEST(Fp8, is_refused_beside_what_it_does_not_go_with) {
  const auto refused = [](Json document, const char* words) {
    try {
      compare(document);
      FAIL() << words;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const auto plain = [](const Json& model, const char* cluster, const char* precision,
                        std::int64_t sequence) {
    return job(model, 0, cluster, precision, "none", 1, sequence);
  };
  const Json fine = plain("llama-3.2-1b", "4xH200", "bf16-master", 512);
  refused(narrowed(fine, "fp8-delayed"), "no products in fp8 with delayed scaling");
  refused(narrowed(fine, "mxfp8"), "H200");
  refused(narrowed(plain("llama-3.2-1b", "1xH200", "fp32", 512), "fp8-tensorwise"), "fp32");
  refused(narrowed(plain("llama-3.2-1b", "1xA100-80GB", "bf16-pure", 512), "fp8-tensorwise"),
          "fp8 units");
  refused(narrowed(plain("llama-3.2-1b", "1xL40S", "bf16-pure", 512), "fp8-rowwise"),
          "compute capability 9.0");
  refused(narrowed(plain("llama-3.2-1b", "1xH200", "bf16-pure", 500), "fp8-tensorwise"),
          "500 tokens");
  Json sparse = mixtral(4, 2);
  compare(narrowed(plain(sparse, "1xH200", "bf16-pure", 512), "fp8-tensorwise"));
  sparse["intermediate_size"] = 456;
  refused(narrowed(plain(sparse, "1xH200", "bf16-pure", 512), "fp8-tensorwise"),
          "456 rows or columns");
  refused(narrowed(plain({{"mlp", {784, 128, 16}}}, "1xH200", "bf16-pure", 16), "fp8-tensorwise"),
          "mlp");
  // 16 divides 304, but not the half of it.
  const Json parts{{"model_type", "llama"},  {"hidden_size", 256},       {"intermediate_size", 304},
                   {"num_hidden_layers", 1}, {"num_attention_heads", 8}, {"vocab_size", 100}};
  compare(narrowed(plain(parts, "2xH200", "bf16-pure", 64), "fp8-tensorwise"));
  refused(shared(narrowed(plain(parts, "2xH200", "bf16-pure", 64), "fp8-tensorwise"), 2),
          "152 rows or columns");
  const Json odd{{"model_type", "llama"},  {"hidden_size", 32},        {"intermediate_size", 72},
                 {"num_hidden_layers", 1}, {"num_attention_heads", 4}, {"vocab_size", 100}};
  refused(narrowed(plain(odd, "1xH200", "bf16-pure", 64), "fp8-tensorwise"), "72 rows or columns");
}

}  // namespace
}  // namespace shardplan::validator::fp8_prediction_test
