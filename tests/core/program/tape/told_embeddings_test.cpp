// What the first and the last segment of an adapted model leave alive or ask for.
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/program/tape/tape_testing.h"
#include "json/document.h"
#include "kernels/description.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/tape.h"

namespace shardplan::trl_loss {
extern const FusedKernel kKernel;
}

namespace shardplan::tape {
namespace {

enum class Then { nothing, scaled, viewed };

/// Frozen embeddings, as they are, times a number or in another shape.
Model embeddings(Then then) {
  ModelBuilder m({});
  const EmbeddingModule words = m.embedding("words", 128, kTestWidth);
  Graph& g = m.begin_segment("embeddings");
  const ValueId x = apply(g, words, Scale::tokens, {1, Scale::tokens});
  g.set_output(
      then == Then::nothing ? x : g.map(then == Then::scaled ? OpKind::scalar : OpKind::view, x));
  Model model = m.build();
  for (Parameter& parameter : model.parameters) parameter.trainable = false;
  return model;
}

TapeRun run_of(const Model& model, const TapeOptions& options) {
  return run_tape(model, model.segments.front(), kTestPure, kTestSizes, kTestPure.params,
                  TapeMode::keep, options);
}

TEST(ToldEmbeddings, AreHeldAsALeafBesideWhatIsMadeOfThem) {
  EXPECT_EQ(run_of(embeddings(Then::scaled), {.output_is_told = true}).held.size(), 1U);
  EXPECT_TRUE(run_of(embeddings(Then::scaled), {}).held.empty());
  EXPECT_TRUE(run_of(embeddings(Then::nothing), {.output_is_told = true}).held.empty());
}

TEST(ToldEmbeddings, AreTheNextSegmentsWhereTheOutputIsTheirStorage) {
  EXPECT_TRUE(run_of(embeddings(Then::viewed), {.output_is_told = true}).held.empty());
}

TEST(AutogradsWorkspace, IsAskedForBehindAHeadWithoutAProductBackward) {
  const auto is_asked = [](const TapeEvent& e) { return e.kind == TapeEvent::Kind::workspace; };
  const auto asks = [&](const TapeRun& run) {
    return std::count_if(run.backward.begin(), run.backward.end(), is_asked);
  };
  EXPECT_EQ(asks(run_of(embeddings(Then::scaled), {.workspace = 1024})), 1);
  EXPECT_EQ(asks(run_of(two_linears(), {.workspace = 1024})), 1);
  EXPECT_EQ(asks(run_of(two_linears(), {})), 0);
}

/// TRL's loss multiplies in its backward pass: the workspace lies beside the tile of logits.
TEST(AutogradsWorkspace, IsAskedForWhileALossHoldsItsTile) {
  const Json config = Json::parse(R"({"model_type": "llama", "hidden_size": 64, "vocab_size": 512,
      "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4})");
  const Model model =
      build_model(load_model_config(config, "config.json"), {.head_loss = &trl_loss::kKernel});
  const TapeRun run = run_tape(model, model.segments.back(), kTestPure, kTestSizes, DType::bf16,
                               TapeMode::keep, {.workspace = 1024});
  const auto first = [&](TapeEvent::Kind kind, Category category) {
    const auto is = [&](const TapeEvent& e) { return e.kind == kind && e.category == category; };
    return std::find_if(run.backward.begin(), run.backward.end(), is);
  };
  const auto tile = first(TapeEvent::Kind::alloc, Category::logits_and_loss);
  const auto asked = first(TapeEvent::Kind::workspace, Category::workspace);
  ASSERT_NE(asked, run.backward.end());
  EXPECT_LT(tile, asked);
  EXPECT_EQ(std::count_if(run.backward.begin(), asked,
                          [&](const TapeEvent& e) {
                            return e.kind == TapeEvent::Kind::free && e.id == tile->id;
                          }),
            0);
}

}  // namespace
}  // namespace shardplan::tape
