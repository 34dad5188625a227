// Under activation checkpointing, layers whose keys and values a dictionary takes leave the graph
// of their recomputation behind (Gemma 3n, Gemma 4).
#include <gtest/gtest.h>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/tape.h"

#include <nlohmann/json.hpp>

namespace shardplan::lent_results_test {
namespace {

/// Layers 0 and 1 slide, alike but that the second one lends; 3 and 4 borrow.
Model network() {
  const Json config = Json::parse(R"({"model_type": "gemma3n_text", "hidden_size": 128,
      "intermediate_size": 224, "num_hidden_layers": 5, "num_attention_heads": 4, "head_dim": 32,
      "num_key_value_heads": 2, "vocab_size": 500, "vocab_size_per_layer_input": 500,
      "hidden_size_per_layer_input": 16, "laurel_rank": 8, "num_kv_shared_layers": 2,
      "layer_types": ["sliding_attention", "sliding_attention", "full_attention",
                      "sliding_attention", "full_attention"]})");
  return build_model(load_model_config(config, "config.json"), {});
}

TapeRun run(const Model& model, std::size_t layer, TapeMode mode) {
  constexpr std::size_t kBefore = 3;  // segments
  const Regime regime{DType::bf16, DType::bf16};
  return run_tape(model, model.segments.at(kBefore + layer), regime, {.batch = 2, .sequence = 32},
                  DType::bf16, mode);
}

std::int64_t held(const TapeRun& run) {
  std::int64_t bytes = 0;
  for (const TapeEvent& e : run.held) bytes += e.bytes;
  return bytes;
}

/// What a backward pass leaves, beside what stands before it.
std::int64_t left(const TapeRun& run) {
  std::int64_t bytes = 0;
  for (const TapeEvent& e : run.backward) {
    if (e.kind == TapeEvent::Kind::alloc) bytes += e.bytes;
    if (e.kind == TapeEvent::Kind::free) bytes -= e.bytes;
  }
  return bytes;
}

TEST(LentResults, KeepTheGraphOfTheirRecomputation) {
  const Model model = network();
  const TapeRun plain = run(model, 0, TapeMode::redo), lender = run(model, 1, TapeMode::redo);
  EXPECT_EQ(held(plain), 0);
  // The streams that came in and the predictions, beside what the norms in front of the
  // projections keep.
  EXPECT_GT(held(lender), 2 * plain.output_bytes);
  EXPECT_EQ(left(lender), left(plain) + held(lender));
  EXPECT_EQ(held(run(model, 1, TapeMode::keep)), 0);
  EXPECT_EQ(held(run(model, 3, TapeMode::redo)), 0);
}

}  // namespace
}  // namespace shardplan::lent_results_test
