// Where a checkpoint's recomputation begins and ends within a block's backward pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program/tape/tape_testing.h"
#include "program/tape.h"

namespace shardplan::tape {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kWide = 4 * kTestWidth * kTestTokens * 2;
constexpr std::int64_t kNarrow = kTestWidth * kTestTokens * 2;

/// Two linears, and what they make times a number.
Model scaled_linears() {
  ModelBuilder m({});
  const LinearModule first = m.linear("first", kTestWidth, 4 * kTestWidth);
  const LinearModule second = m.linear("second", 4 * kTestWidth, kTestWidth);
  Graph& g = m.begin_segment("layer");
  const ValueId x = g.chained_input({kTestWidth, Scale::tokens});
  g.set_output(g.map(OpKind::scalar, apply(g, second, apply(g, first, x))));
  return m.build();
}

Model frozen(Model model) {
  for (Parameter& parameter : model.parameters) parameter.trainable = false;
  return model;
}

/// Bytes of what is allocated, in its order.
std::vector<std::int64_t> allocated(const Model& model, const TapeOptions& options = {}) {
  std::vector<std::int64_t> bytes;
  for (const TapeEvent& e : run_tape(model, model.segments.front(), kTestPure, kTestSizes,
                                     kTestPure.params, TapeMode::redo, options)
                                .backward)
    if (e.kind == TapeEvent::Kind::alloc) bytes.push_back(e.bytes);
  return bytes;
}

TEST(Recomputation, EndsAtTheLastWeightThatIsSaved) {
  // The second product is not run again; then the gradients of what both read.
  EXPECT_THAT(allocated(frozen(two_linears())), ElementsAre(kWide, kWide, kNarrow));
}

TEST(Recomputation, RunsToTheEndWhereItDoesNotStop) {
  EXPECT_THAT(allocated(frozen(two_linears()), {.stops_early = false}),
              ElementsAre(kWide, kNarrow, kWide, kNarrow));
}

TEST(Recomputation, BeginsBehindTheNodesThatHaveSavedNothing) {
  // The gradient of the number's product is there first.
  EXPECT_THAT(allocated(scaled_linears()), ElementsAre(kNarrow, kWide, kWide, kNarrow));
}

TEST(Recomputation, StandsFirstInAFunctionThatEntersAutogradAgain) {
  TapeOptions options;
  options.saved_input.function = CheckpointFunction::deepspeed;
  ASSERT_EQ(allocated(scaled_linears(), options).front(), kWide);
}

}  // namespace
}  // namespace shardplan::tape
