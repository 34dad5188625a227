// When parameters take the gradients that a backward pass makes for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "program/tape.h"
#include "support/plan_testing.h"

namespace shardplan::added_gradients_test {
namespace {

constexpr std::int64_t kTokens = 1024;
constexpr std::int64_t kHidden = 64, kWide = 4 * kHidden;

Model gpt2() {
  return model_of(R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4,
                      "vocab_size": 512, "resid_pdrop": 0.0})");
}

std::vector<TapeEvent> backward(std::size_t segment, const TapeOptions& options) {
  const Model model = gpt2();
  const TapeRun run = run_tape(model, model.segments[segment], {DType::bf16, DType::bf16},
                               {1, kTokens, 0}, DType::bf16, TapeMode::redo, options);
  return run.backward;
}

std::ptrdiff_t find(const std::vector<TapeEvent>& events, TapeEvent::Kind kind, std::int32_t id,
                    std::ptrdiff_t from = 0) {
  const auto at = std::find_if(events.begin() + from, events.end(),
                               [&](const TapeEvent& e) { return e.kind == kind && e.id == id; });
  return at - events.begin();
}

// The first linear of the backward pass: the feed-forward's second one.
TEST(AddedGradients, OfALinearComeWhenItsBiasIsSummed) {
  TapeOptions options;
  options.multiprocessors = 132;
  const std::vector<TapeEvent> events = backward(1, options);
  std::vector<std::int32_t> order;
  for (const TapeEvent& e : events)
    if (e.kind == TapeEvent::Kind::gradient) order.push_back(e.id);
  ASSERT_GE(order.size(), 2U);
  const auto weight = find(events, TapeEvent::Kind::gradient, order[0]);
  const auto bias = find(events, TapeEvent::Kind::gradient, order[1]);
  EXPECT_EQ(events[static_cast<std::size_t>(weight)].bytes, 2 * kHidden * kWide);
  EXPECT_LT(weight, bias);
  EXPECT_LT(bias, find(events, TapeEvent::Kind::added, order[0]));
  // What was recomputed for the product goes before the bias is summed.
  const auto is_input = [&](const TapeEvent& e) {
    return e.kind == TapeEvent::Kind::free && e.bytes == 2 * kTokens * kWide;
  };
  EXPECT_TRUE(std::any_of(events.begin() + weight, events.begin() + bias, is_input));
}

TEST(AddedGradients, EachIsTakenOnce) {
  for (const std::size_t segment : {0U, 1U, 2U}) {
    const std::vector<TapeEvent> events = backward(segment, {});
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind != TapeEvent::Kind::gradient) continue;
      const auto taken = std::count_if(events.begin(), events.end(), [&](const TapeEvent& e) {
        return e.kind == TapeEvent::Kind::added && e.id == events[i].id;
      });
      EXPECT_EQ(taken, 1) << events[i].id;
    }
  }
}

// Autograd adds the table's gradient to the head's, a view, in a new tensor.
TEST(AddedGradients, OfATableThatTheHeadReadsIsASum) {
  TapeOptions options;
  options.takes_sums = true;
  const std::vector<TapeEvent> events = backward(0, options);
  const auto summed = find(events, TapeEvent::Kind::summed, 0);
  ASSERT_LT(summed, static_cast<std::ptrdiff_t>(events.size()));
  EXPECT_LT(find(events, TapeEvent::Kind::gradient, 0), summed);
  const TapeEvent& freed = events[static_cast<std::size_t>(summed - 1)];
  EXPECT_EQ(freed.kind, TapeEvent::Kind::free);
  EXPECT_EQ(freed.bytes, 2 * 512 * kHidden);
}

}  // namespace
}  // namespace shardplan::added_gradients_test
