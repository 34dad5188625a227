// Which results compiled kernels write over what they read, as wrappers of PyTorch 2.11 do for
// Llama 3.2 1B on an H200.
#include <gtest/gtest.h>

#include <algorithm>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/compiled/run.h"

namespace shardplan::in_place_test {
namespace {

constexpr std::int64_t kTokens = 2 * 2048, kHidden = 2048, kInner = 8192;

TapeRun run(std::size_t segment, TapeMode mode = TapeMode::keep, const TapeOptions& options = {}) {
  const Json config = Json::parse(R"({"model_type": "llama", "hidden_size": 2048,
      "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8,
      "head_dim": 64, "num_hidden_layers": 1, "vocab_size": 4096})");
  const Model model = build_model(load_model_config(config, "config.json"), {});
  const Regime regime{.params = DType::bf16, .compute = DType::bf16};
  return run_compiled(model, model.segments[segment], regime, {2, 2048, 0}, DType::bf16, mode,
                      options);
}

std::ptrdiff_t allocations(const std::vector<TapeEvent>& events, std::int64_t elements) {
  return std::count_if(events.begin(), events.end(), [&](const TapeEvent& e) {
    return e.kind == TapeEvent::Kind::alloc && e.bytes == 2 * elements;
  });
}

TEST(InPlace, OneOfAGatesTwoGradientsTakesThePlaceOfWhatItAloneReads) {
  // The product of down's gradient, and the gradient of up: that of the gate lies over up.
  EXPECT_EQ(allocations(run(1).backward, kTokens * kInner), 2);
}

TEST(InPlace, HeadsAreNotTurnedOverThemselves) {
  EXPECT_EQ(allocations(run(1).forward, kTokens * kHidden), 8);
}

// Behind the loss, whose logits Inductor believes to be gone by then.
TEST(Buffers, WaitForTheNextBlockWhereTheExpectedPeakIsElsewhere) {
  const TapeRun tight = run(1, TapeMode::redo, {.blocks_alike = true});
  const TapeRun roomy =
      run(1, TapeMode::redo, {.blocks_alike = true, .believed_room = std::int64_t{1} << 40});
  EXPECT_GT(roomy.carried.size(), tight.carried.size());
  EXPECT_LT(allocations(roomy.backward, kTokens * kInner),
            allocations(tight.backward, kTokens * kInner));
}

TEST(Buffers, LeaveAsMuchAsTheyFind) {
  const TapeRun blocks =
      run(1, TapeMode::redo, {.blocks_alike = true, .believed_room = std::int64_t{1} << 40});
  std::int64_t found = 0, live = 0;
  for (const TapeEvent& e : blocks.carried) found += e.bytes;
  live = found;
  for (const TapeEvent& e : blocks.backward) {
    if (e.kind == TapeEvent::Kind::alloc) live += e.bytes;
    if (e.kind == TapeEvent::Kind::free) live -= e.bytes;
  }
  // The block's input and its result's gradient go; the input's gradient is there.
  EXPECT_EQ(live, found - 2 * kTokens * kHidden);
}

/// What is there when the last tensor has been allocated.
std::int64_t at_last(const std::vector<TapeEvent>& events) {
  std::int64_t live = 0, last = 0;
  for (const TapeEvent& e : events) {
    if (e.kind == TapeEvent::Kind::free) live -= e.bytes;
    if (e.kind == TapeEvent::Kind::alloc) last = live += e.bytes;
  }
  return last;
}

// The head's last kernel is part of one of the block's, behind what makes the head's input again:
// that is there, and not the operand beside the result.
TEST(InPlace, WhatGoesToABlockThatIsComputedAgainIsMadeBehindThat) {
  const TapeRun behind = run(2, TapeMode::keep, {.input_again = true});
  EXPECT_EQ(at_last(behind.backward), at_last(run(2).backward));
}

}  // namespace
}  // namespace shardplan::in_place_test
