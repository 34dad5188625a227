// What the first and the last segment of an adapted model leave alive or ask for.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/program/tape/tape_testing.h"
#include "program/tape.h"

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

}  // namespace
}  // namespace shardplan::tape
