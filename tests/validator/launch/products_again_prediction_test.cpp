// Jobs whose blocks do some products again: core's native lowering beside a dry run of the engine.
#include "validator/launch/prediction.h"

namespace shardplan::validator::products_again_prediction_test {
namespace {

using namespace testing;

/// The second and the last product of a block, the third, the last, none of them.
constexpr const char* kPolicies[] = {"selective_op:2", "selective_op:3", "selective_op:4",
                                     "selective_op:5"};

class ProductsAgain : public ::testing::TestWithParam<int> {};

TEST_P(ProductsAgain, are_predicted_to_the_byte) {
  for (const std::string policy : kPolicies)
    for (const char* model : {"gpt2", "llama-2-7b", "qwen3-0.6b"}) {
      const Json plain = job(model, GetParam(), "4xH200", "bf16-master", policy, 4, 1000, 2);
      const std::string what = fmt::format("{}, {}", model, policy);
      expect_same(plain, what);
      expect_same(shared(plain, 2), what + ", tensor 2");
      expect_same(ringed(plain, 2), what + ", context 2");
      expect_same_offloaded(plain, what);
      const Json on_host =
          job(model, GetParam(), "4xH200", "bf16-pure", policy + "+offload", 3, 777);
      expect_same(on_host, what + ", what blocks keep on the host");
    }
}

TEST_P(ProductsAgain, of_experts_are_predicted_to_the_byte) {
  for (const std::string policy : kPolicies)
    for (const double factor : {0.0, 1.25})
      for (const std::int64_t ranks : {1, 4}) {
        const std::string what = fmt::format("{}, {}, {}", policy, factor, ranks);
        for (const std::string where : {"", "+offload"})
          expect_same(divided(job(mixtral(8, 2), GetParam(), "4xH200", "bf16-master",
                                  policy + where, 3, 77, 2),
                              ranks, factor),
                      "mixtral, " + what + where);
        expect_same(
            divided(job(qwen3_moe(), GetParam(), "4xH200", "fp32", policy, 2, 100), ranks, factor),
            "qwen3_moe, " + what);
      }
}

TEST_P(ProductsAgain, beside_adapters_and_in_fp8_are_predicted_to_the_byte) {
  for (const std::string policy : kPolicies) {
    const Json plain = job("llama-3.2-1b", GetParam(), "4xH200", "bf16-master", policy, 2, 1008, 2);
    for (const char* base : {"none", "nf4_double"})
      for (const char* targets : {R"(["q_proj", "v_proj"])", R"(["all-linear"])"})
        expect_same(adapted(plain, targets, base, 16), policy + base + targets);
    for (const char* linear : {"fp8-tensorwise", "fp8-rowwise"}) {
      expect_same(narrowed(plain, linear), policy + linear);
      expect_same(shared(narrowed(plain, linear), 2), policy + linear + ", tensor 2");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, ProductsAgain, ::testing::Values(0, 1, 2, 3));

class ProductsAgainOfStages : public ::testing::TestWithParam<int> {};

TEST_P(ProductsAgainOfStages, are_predicted_to_the_byte_on_each) {
  for (const std::string policy : kPolicies)
    for (const char* model : {"gpt2", "llama-2-7b"}) {
      const Json whole = job(model, GetParam(), "8xH200", "bf16-master", policy, 2, 1000, 4);
      expect_same_of_stages(staged(whole, 4, "1f1b"), model + (", " + policy));
      expect_same_of_stages(staged(whole, 2, "interleaved", 2, 2),
                            model + (", interleaved, " + policy));
    }
}

INSTANTIATE_TEST_SUITE_P(Zero, ProductsAgainOfStages, ::testing::Values(0, 1));

}  // namespace
}  // namespace shardplan::validator::products_again_prediction_test
