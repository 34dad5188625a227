// core's native lowering beside a dry run of the engine. They share no code: what they agree on is
// the rules of docs/explanation/validation.md.
#include "validator/launch/prediction.h"

namespace shardplan::validator {
namespace {

using namespace testing;

class EveryStage : public ::testing::TestWithParam<int> {};

TEST_P(EveryStage, of_catalogue_models_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "gpt2-xl", "llama-3.2-1b", "llama-2-7b", "mistral-7b-v0.1",
                            "qwen2.5-0.5b", "qwen3-0.6b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      expect_same(job(model, GetParam(), "4xH200", "bf16-master", checkpointing, 4, 1024),
                  fmt::format("{}, {}", model, checkpointing));
}

TEST_P(EveryStage, of_some_blocks_done_again_is_predicted_to_the_byte) {
  for (const char* blocks : {"blocks:1", "blocks:5", "blocks/2", "blocks/5"}) {
    for (const char* model : {"gpt2", "qwen3-0.6b"})
      expect_same(job(model, GetParam(), "4xH200", "bf16-master", blocks, 3, 777, 2),
                  fmt::format("{}, {}", model, blocks));
    expect_same(
        divided(job(mixtral(8, 2), GetParam(), "4xH200", "bf16-master", blocks, 3, 77), 2, 1.25),
        blocks);
    expect_same_offloaded(job("gpt2", GetParam(), "2xH200", "bf16-pure", blocks, 3, 512), blocks);
  }
}

TEST_P(EveryStage, of_every_precision_and_world_is_predicted_to_the_byte) {
  for (const char* precision : {"fp32", "bf16-pure", "bf16-master", "fp16-master"})
    for (const char* cluster : {"1xH200", "2xH200", "8xH200", "2x8xH200"})
      expect_same(job("qwen3-0.6b", GetParam(), cluster, precision, "none", 3, 777, 2),
                  fmt::format("{} on {}", precision, cluster));
}

TEST_P(EveryStage, of_odd_shapes_is_predicted_to_the_byte) {
  const Json odd{{"model_type", "llama"},
                 {"hidden_size", 36},
                 {"intermediate_size", 50},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 6},
                 {"num_key_value_heads", 3},
                 {"vocab_size", 131},
                 {"max_position_embeddings", 64},
                 {"tie_word_embeddings", true},
                 {"attention_bias", true},
                 {"mlp_bias", true}};
  const Json gpt{{"model_type", "gpt2"}, {"n_embd", 20},      {"n_layer", 3},
                 {"n_head", 5},          {"vocab_size", 257}, {"n_positions", 19}};
  for (const char* cluster : {"1xH200", "3xH200"}) {
    expect_same(job(odd, GetParam(), cluster, "bf16-master", "none", 3, 13), "odd llama");
    expect_same(job(gpt, GetParam(), cluster, "fp32", "full", 1, 19), "odd gpt2");
    expect_same(job({{"mlp", {784, 128, 10}}}, GetParam(), cluster, "fp32", "none", 32, 1), "mlp");
    expect_same(job({{"mlp", {13, 7, 11, 5}}}, GetParam(), cluster, "bf16-pure", "none", 3, 1),
                "odd mlp");
  }
}

TEST_P(EveryStage, of_offloaded_states_is_predicted_to_the_byte) {
  for (const char* precision : {"fp32", "bf16-pure", "bf16-master", "fp16-master"})
    for (const char* cluster : {"1xH200", "2x8xH200"})
      for (const std::int64_t accumulation : {1, 2})
        expect_same_offloaded(
            job("qwen3-0.6b", GetParam(), cluster, precision, "full", 3, 777, accumulation),
            fmt::format("{} on {} × {}", precision, cluster, accumulation));
  expect_same_offloaded(job("llama-2-7b", GetParam(), "4xH200", "bf16-master", "full", 2, 2048),
                        "llama-2-7b");
  expect_same_offloaded(job({{"mlp", {784, 128, 10}}}, GetParam(), "3xH200", "fp32", "none", 32, 1),
                        "mlp");
}

TEST_P(EveryStage, of_what_blocks_keep_on_the_host_is_predicted_to_the_byte) {
  for (const char* checkpointing : {"none", "selective", "full"})
    for (const char* cluster : {"1xH200", "4xH200"}) {
      for (const char* model : {"gpt2", "llama-2-7b", "qwen3-0.6b"}) {
        const std::string what = fmt::format("{} on {}, {}", model, cluster, checkpointing);
        const Json plain = job(model, GetParam(), cluster, "bf16-master", checkpointing, 3, 777, 2);
        expect_same(sent(plain), what);
        expect_same_offloaded(sent(plain), what);
      }
      Json shared =
          sent(job("llama-2-7b", GetParam(), cluster, "bf16-pure", checkpointing, 4, 512));
      shared["parallel"] = {{"tensor", cluster[0] - '0'}};
      expect_same(shared, "tensor");
      shared["parallel"] = {{"context", cluster[0] - '0'}};
      expect_same(shared, "context");
    }
}

TEST_P(EveryStage, of_few_blocks_on_the_host_is_predicted_to_the_byte) {
  for (const char* checkpointing : {"none", "selective", "full"})
    for (const int layers : {1, 2, 3, 4}) {
      const Json gpt{{"model_type", "gpt2"}, {"n_embd", 20},      {"n_layer", layers},
                     {"n_head", 5},          {"vocab_size", 257}, {"n_positions", 19}};
      expect_same(sent(job(gpt, GetParam(), "1xH200", "fp32", checkpointing, 1, 19)),
                  fmt::format("{} layers, {}", layers, checkpointing));
    }
}

TEST_P(EveryStage, of_shared_layers_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-3.2-1b", "llama-2-7b", "qwen2.5-0.5b", "qwen3-0.6b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const char* cluster : {"2xH200", "4xH200", "2x8xH200"})
        expect_same(
            shared(job(model, GetParam(), cluster, "bf16-master", checkpointing, 4, 1000, 2), 2),
            fmt::format("{} on {}, {}", model, cluster, checkpointing));
  for (const char* precision : {"fp32", "bf16-pure", "fp16-master"})
    for (const char* cluster : {"4xH200", "8xH200"})
      expect_same(shared(job("llama-2-7b", GetParam(), cluster, precision, "selective", 3, 776), 4),
                  fmt::format("{} on {}", precision, cluster));
}

TEST_P(EveryStage, of_shared_layers_with_states_on_the_host_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-2-7b", "qwen3-0.6b"})
    for (const char* precision : {"bf16-pure", "bf16-master"})
      for (const char* cluster : {"2xH200", "2x8xH200"})
        expect_same_offloaded(
            shared(job(model, GetParam(), cluster, precision, "full", 4, 1000, 2), 2),
            fmt::format("{} on {}, {}", model, cluster, precision));
}

TEST_P(EveryStage, of_experts_is_predicted_to_the_byte) {
  for (const char* checkpointing : {"none", "selective", "full"})
    for (const double factor : {0.0, 1.25})
      for (const char* cluster : {"1xH200", "4xH200", "2x8xH200"})
        for (const std::int64_t ranks : {1, 2, 4}) {
          if (std::string(cluster) == "1xH200" && ranks > 1) continue;
          const std::string what =
              fmt::format("{} on {}, {}, {}", ranks, cluster, checkpointing, factor);
          expect_same(divided(job(mixtral(8, 2), GetParam(), cluster, "bf16-master", checkpointing,
                                  3, 77, 2),
                              ranks, factor),
                      "mixtral, " + what);
          expect_same(divided(job(qwen3_moe(), GetParam(), cluster, "fp32", checkpointing, 2, 100),
                              ranks, factor),
                      "qwen3_moe, " + what);
        }
}

TEST_P(EveryStage, of_experts_with_what_blocks_keep_on_the_host_is_predicted_to_the_byte) {
  for (const char* checkpointing : {"none", "selective", "full"})
    for (const std::int64_t ranks : {1, 4})
      expect_same(sent(divided(job(mixtral(8, 2), GetParam(), "4xH200", "bf16-master",
                                   checkpointing, 3, 77, 2),
                               ranks, 1.25)),
                  fmt::format("{}, {}", ranks, checkpointing));
}

TEST_P(EveryStage, of_experts_of_every_precision_is_predicted_to_the_byte) {
  for (const char* precision : {"fp32", "bf16-pure", "bf16-master", "fp16-master"})
    for (const std::int64_t ranks : {1, 4})
      expect_same(divided(job(mixtral(4, 3), GetParam(), "4xH200", precision, "none", 1, 333, 3),
                          ranks, 1.0),
                  fmt::format("{}, {}", precision, ranks));
  // Large enough for a workspace of its own, and offloaded.
  expect_same(
      divided(job("mixtral-8x7b-v0.1", GetParam(), "8xH200", "bf16-pure", "full", 2, 4096), 8, 1.5),
      "mixtral-8x7b");
  for (const std::int64_t ranks : {1, 2, 4})
    expect_same_offloaded(
        divided(job(mixtral(8, 2), GetParam(), "4xH200", "bf16-master", "full", 3, 77, 2), ranks,
                1.25),
        fmt::format("mixtral, {}", ranks));
}

TEST_P(EveryStage, of_shared_sequences_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-3.2-1b", "llama-2-7b", "qwen2.5-0.5b", "qwen3-0.6b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const char* cluster : {"2xH200", "4xH200", "2x8xH200"})
        expect_same(
            ringed(job(model, GetParam(), cluster, "bf16-master", checkpointing, 3, 1000, 2), 2),
            fmt::format("{} on {}, {}", model, cluster, checkpointing));
  for (const char* precision : {"fp32", "bf16-pure", "fp16-master"})
    for (const char* cluster : {"4xH200", "8xH200"})
      for (const std::int64_t tensor : {1, 2}) {
        if (tensor == 2 && cluster[0] == '4') continue;
        expect_same(
            ringed(job("llama-3.2-1b", GetParam(), cluster, precision, "selective", 1, 8 * 777), 4,
                   tensor),
            fmt::format("{} on {}, tensor {}", precision, cluster, tensor));
      }
  // One row in each run.
  expect_same(ringed(job("gpt2", GetParam(), "8xH200", "bf16-master", "none", 2, 16), 8), "8 × 2");
}

TEST_P(EveryStage, of_shared_sequences_with_states_on_the_host_is_predicted_to_the_byte) {
  for (const char* precision : {"fp32", "bf16-pure", "bf16-master"})
    expect_same_offloaded(
        ringed(job("qwen3-0.6b", GetParam(), "4xH200", precision, "full", 1, 4096, 2), 4),
        precision);
}

TEST_P(EveryStage, of_experts_beside_shared_sequences_is_predicted_to_the_byte) {
  for (const char* checkpointing : {"none", "selective", "full"})
    for (const double factor : {0.0, 1.25})
      for (const std::int64_t experts : {1, 2, 4})
        for (const std::int64_t context : {2, 4}) {
          Json document =
              job(mixtral(8, 2), GetParam(), "4xH200", "bf16-master", checkpointing, 3, 96, 2);
          document["parallel"] = {{"expert", experts}, {"context", context}};
          document["framework"]["capacity_factor"] = factor;
          const std::string what = fmt::format("{}, {}, experts {}, context {}", checkpointing,
                                               factor, experts, context);
          expect_same(document, what);
          if (factor > 0) expect_same_offloaded(document, what);
        }
}

/// Over some of the ranks that share layers, over those, over others too, and on each of them.
TEST_P(EveryStage, of_experts_beside_shared_layers_is_predicted_to_the_byte) {
  for (const char* checkpointing : {"none", "selective", "full", "selective_op:2"})
    for (const double factor : {0.0, 1.25})
      for (const auto& [tensor, experts, context] :
           {std::tuple{2, 2, 1}, {2, 4, 1}, {2, 8, 1}, {4, 2, 1}, {2, 4, 2}, {2, 1, 1}, {4, 1, 2}}) {
        Json document =
            job(mixtral(8, 2), GetParam(), "8xH200", "bf16-master", checkpointing, 4, 96, 2);
        document["model"]["num_key_value_heads"] = document["model"]["num_attention_heads"];
        document["parallel"] = {{"tensor", tensor}, {"expert", experts}, {"context", context}};
        document["framework"]["capacity_factor"] = factor;
        const std::string what = fmt::format("{}, {}, tensor {}, experts {}, context {}",
                                             checkpointing, factor, tensor, experts, context);
        expect_same(document, what);
        if (factor == 0) continue;
        if (std::string_view(checkpointing) == "none") expect_same(sent(document), what + ", sent");
        expect_same_offloaded(document, what);
      }
}

TEST_P(EveryStage, of_adapters_of_experts_beside_shared_layers_is_predicted_to_the_byte) {
  for (const char* base : {"none", "nf4", "nf4_double"}) {
    Json document = adapted_experts(
        adapted(job(qwen3_moe(), GetParam(), "4xH200", "bf16-master", "full", 2, 100),
                R"(["q_proj", "o_proj"])", base, 8),
        R"(["experts.gate_up_proj", "experts.down_proj"])");
    if (std::string(base) != "none") document = quantized_experts(document);
    for (const int experts : {1, 4}) {
      document["parallel"] = {{"tensor", 2}, {"expert", experts}};
      expect_same(document, base);
    }
  }
}

class EveryPipeline : public ::testing::TestWithParam<int> {};

TEST_P(EveryPipeline, is_predicted_to_the_byte_on_each_stage) {
  for (const char* model : {"gpt2", "llama-3.2-1b", "llama-2-7b", "qwen3-0.6b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const std::int64_t micro_batches : {1, 3, 8}) {
        const Json whole =
            job(model, GetParam(), "8xH200", "bf16-master", checkpointing, 2, 1000, micro_batches);
        for (const std::int64_t stages : {2, 4}) {
          const std::string what =
              fmt::format("{}, {}, {} × {}", model, checkpointing, micro_batches, stages);
          expect_same_of_stages(staged(whole, stages, "gpipe"), what + ", gpipe");
          expect_same_of_stages(staged(whole, stages, "1f1b"), what + ", 1f1b");
        }
        if (micro_batches % 2 == 0)
          expect_same_of_stages(staged(whole, 2, "interleaved", 2),
                                fmt::format("{}, {}, interleaved", model, checkpointing));
      }
}

TEST_P(EveryPipeline, of_some_blocks_done_again_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-2-7b"})
    for (const char* blocks : {"blocks:1", "blocks:5", "blocks/2", "blocks/5"}) {
      const Json whole = job(model, GetParam(), "8xH200", "bf16-master", blocks, 2, 1000, 4);
      for (const std::int64_t stages : {2, 4})
        for (const char* order : {"gpipe", "1f1b"})
          expect_same_of_stages(staged(whole, stages, order, 1, 2),
                                fmt::format("{}, {}, {} × {}", model, blocks, stages, order));
    }
}

TEST_P(EveryPipeline, of_every_precision_is_predicted_to_the_byte) {
  for (const char* precision : {"fp32", "bf16-pure", "fp16-master"})
    for (const char* cluster : {"2xH200", "4xH200", "2x8xH200"})
      expect_same_of_stages(
          staged(job("llama-3.2-1b", GetParam(), cluster, precision, "none", 3, 777, 4), 2,
                 "interleaved", 4),
          fmt::format("{} on {}", precision, cluster));
}

TEST_P(EveryPipeline, of_many_chunks_is_predicted_to_the_byte) {
  for (const std::int64_t micro_batches : {4, 12})
    for (const std::int64_t chunks : {2, 4, 8})
      expect_same_of_stages(staged(job("llama-2-7b", GetParam(), "8xH200", "bf16-master", "none", 1,
                                       512, micro_batches),
                                   4, "interleaved", chunks),
                            fmt::format("{} × {}", micro_batches, chunks));
}

TEST_P(EveryPipeline, of_shared_layers_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-2-7b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      expect_same_of_stages(
          staged(job(model, GetParam(), "8xH200", "bf16-master", checkpointing, 4, 1000, 6), 2,
                 "1f1b", 1, 2),
          fmt::format("{}, {}", model, checkpointing));
}

TEST_P(EveryPipeline, of_shared_sequences_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-2-7b"})
    for (const char* checkpointing : {"none", "selective", "full"}) {
      Json document = staged(
          job(model, GetParam(), "8xH200", "bf16-master", checkpointing, 4, 1000, 6), 2, "1f1b");
      document["parallel"]["context"] = 4;
      expect_same_of_stages(document, fmt::format("{}, {}", model, checkpointing));
    }
}

/// Over 1, 2 and 4 of a stage's ranks, beside sequences too.
TEST_P(EveryPipeline, of_experts_is_predicted_to_the_byte) {
  Json deep = mixtral(8, 2);
  deep["num_hidden_layers"] = 8;
  for (const char* checkpointing : {"none", "selective", "full", "selective_op:2"})
    for (const double factor : {0.0, 1.25})
      for (const std::int64_t experts : {1, 2, 4})
        for (const std::int64_t context : {1, 2}) {
          const Json whole =
              unbalanced(job(deep, GetParam(), "8xH200", "bf16-master", checkpointing, 2, 96, 4));
          const auto of = [&](Json document) {
            document["parallel"]["expert"] = experts;
            document["parallel"]["context"] = context;
            document["framework"]["capacity_factor"] = factor;
            return document;
          };
          const std::string what = fmt::format("{}, {}, experts {}, context {}", checkpointing,
                                               factor, experts, context);
          expect_same_of_stages(of(staged(whole, 2, "1f1b")), what + ", 1f1b");
          expect_same_of_stages(of(staged(whole, 2, "gpipe")), what + ", gpipe");
          expect_same_of_stages(of(staged(whole, 2, "interleaved", 2)), what + ", interleaved");
        }
}

TEST_P(EveryPipeline, of_experts_beside_shared_layers_is_predicted_to_the_byte) {
  Json deep = mixtral(8, 2);
  deep["num_hidden_layers"] = 8;
  for (const char* checkpointing : {"none", "full"})
    for (const std::int64_t experts : {2, 4}) {
      Json document =
          unbalanced(job(deep, GetParam(), "8xH200", "bf16-master", checkpointing, 2, 96, 4));
      document = staged(document, 2, "1f1b");
      document["parallel"]["tensor"] = 2;
      document["parallel"]["expert"] = experts;
      expect_same_of_stages(document, fmt::format("{}, {}", checkpointing, experts));
    }
}

TEST_P(EveryPipeline, of_adapters_of_experts_is_predicted_to_the_byte) {
  Json deep = mixtral(8, 2);
  deep["num_hidden_layers"] = 8;
  for (const char* base : {"none", "nf4_double"})
    for (const std::int64_t experts : {1, 2}) {
      Json document = unbalanced(
          adapted_experts(adapted(job(deep, GetParam(), "4xH200", "bf16-master", "full", 2, 96, 4),
                                  R"(["q_proj"])", base, 8),
                          R"(["experts.gate_up_proj", "experts.down_proj"])"));
      if (std::string(base) != "none") document = quantized_experts(document);
      document = staged(document, 2, "1f1b");
      document["parallel"]["expert"] = experts;
      expect_same_of_stages(document, fmt::format("{}, {}", base, experts));
    }
}

INSTANTIATE_TEST_SUITE_P(Zero, EveryPipeline, ::testing::Values(0, 1));

INSTANTIATE_TEST_SUITE_P(Zero, EveryStage, ::testing::Values(0, 1, 2, 3));

TEST(BalanceOfExperts, is_not_divided_over_stages) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  Json model = mixtral(8, 2);
  model["num_hidden_layers"] = 4;
  const Json document = staged(job(model, 0, "2xH200", "bf16-master", "none", 1, 64, 2), 2, "1f1b");
  EXPECT_NO_THROW(load_engine_job(unbalanced(document), "test.json", kHardware));
  EXPECT_THROW(load_engine_job(document, "test.json", kHardware), InputError);
}

TEST(BalancedRouting, is_of_models_with_experts_alone) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const auto evenly = [](const Json& model, bool balanced) {
    Json document = job(model, 0, "1xH200", "bf16-master", "none", 1, 64);
    if (balanced) document["run"]["balanced_routing"] = true;
    const EngineJob read = load_engine_job(document, "test.json", kHardware);
    return std::get<DecoderSpec>(read.network).experts->evenly;
  };
  EXPECT_TRUE(evenly(qwen3_moe(), true));
  EXPECT_FALSE(evenly(qwen3_moe(), false));
  EXPECT_THROW(evenly("qwen3-0.6b", true), InputError);
}

TEST(DryRun, names_the_tensor_that_does_not_fit) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const EngineJob big = load_engine_job(
      job("llama-2-7b", 0, "1xH200", "bf16-master", "none", 1, 512), "test.json", kHardware);
  try {
    plan_memory(
        big, 0, 1, [](const StepShapes&) { return std::int64_t{0}; }, std::int64_t{40} << 30);
    FAIL() << "16 bytes a parameter do not fit in 40 GiB";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("no room for blocks."), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("blocks.*.parameters × 32"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardplan::validator
