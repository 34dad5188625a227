// What Inductor allocates to time products whose rows are not aligned, as the history of GPT-2
// medium's allocations had it on an H100 (8 x 1024 tokens, 50,257 words).
#include "program/compiled/trials.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shardplan::compiled {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::vector<TapeEvent> head(bool trains) {
  return trial_events({{{8192, 1024, 50257}, 50264, DType::bf16, true, trains}}, 0);
}

TEST(Trials, AllocateOperandsResultsAndLongerCopiesOfEachProduct) {
  std::vector<double> allocated;
  for (const TapeEvent& e : head(true))
    if (e.kind == TapeEvent::Kind::alloc) allocated.push_back(static_cast<double>(e.bytes) / kMiB);
  const std::vector<double> history{785.27, 98.16,  16.00,  785.38, 98.17,  // the input's gradient
                                    16.00,  785.27, 16.00,  98.16,  785.38, 98.17,  // the weight's
                                    16.00,  98.16,  785.27, 98.17,  785.38};        // logits
  ASSERT_EQ(allocated.size(), history.size());
  for (std::size_t i = 0; i < history.size(); ++i) EXPECT_NEAR(allocated[i], history[i], 0.01);
}

TEST(Trials, LeaveNothingBehind) {
  std::int64_t live = 0;
  for (const TapeEvent& e : head(true)) {
    live += e.kind == TapeEvent::Kind::alloc ? e.bytes : -e.bytes;
    EXPECT_GE(live, 0);
  }
  EXPECT_EQ(live, 0);
}

TEST(Trials, AFrozenHeadHasNoProductOfItsOwnGradient) {
  EXPECT_EQ(head(true).size() - head(false).size(), 2 * 5U);
  EXPECT_TRUE(trial_events({}, 0).empty());
}

// An allocator's history of RoBERTa: twice a product, as it is and with longer rows.
TEST(Trials, ClearTheCacheBetweenRunsOfAProduct) {
  constexpr std::int64_t kCache = 60 * kMiB;
  const std::vector<TapeEvent> events =
      trial_events({{{8192, 1024, 50257}, 50264, DType::bf16, false, false}}, kCache);
  EXPECT_EQ(std::ranges::count_if(events, [](const TapeEvent& e) { return e.bytes == kCache; }),
            2 * 2);
}

/// Of kernels that read one tensor and write another.
std::vector<TapeEvent> timed(std::int64_t cache, const std::vector<std::int64_t>& elements) {
  TapeRun run;
  tape::TapeWriter writer(run, TapeMode::keep, false);
  KernelTrials trials(writer, cache);
  for (const std::int64_t count : elements) {
    JointGraph graph;
    graph.nodes.resize(2);
    for (Node& node : graph.nodes) node.elements = count;
    trials.time(graph, {.reads = {0}, .writes = {1}, .span = count}, 0);
  }
  return run.forward;
}

TEST(KernelTrials, AreAsLargeAsTheCacheAndNameKernelsByWhatTheyMove) {
  const std::vector<TapeEvent> events = timed(50 * kMiB, {1000, 2000, 1000});
  ASSERT_EQ(events.size(), 3U);
  for (const TapeEvent& e : events) {
    EXPECT_EQ(e.kind, TapeEvent::Kind::timed);
    EXPECT_EQ(e.bytes, 50 * kMiB);
  }
  EXPECT_EQ(events[0].id, events[2].id);
  EXPECT_NE(events[0].id, events[1].id);
  EXPECT_TRUE(timed(0, {1000}).empty());
}

/// Trials of a kernel that sums up rows of so many elements.
std::size_t trials_of_rows(std::int64_t row) {
  TapeRun run;
  tape::TapeWriter writer(run, TapeMode::keep, false);
  KernelTrials trials(writer, 50 * kMiB);
  JointGraph graph;
  graph.nodes.resize(2);
  graph.nodes[0].elements = 64 * row;
  graph.nodes[1].elements = 64;
  graph.nodes[1].kind = NodeKind::reduction;
  trials.time(graph,
              {.nodes = {{1, {0}}}, .reads = {0}, .writes = {1}, .reduces = true, .span = 64 * row},
              0);
  return run.forward.size();
}

TEST(KernelTrials, AreNoneOfKernelsWithOneForm) {
  EXPECT_EQ(trials_of_rows(2048), 0U);
  EXPECT_EQ(trials_of_rows(128), 1U);
}

}  // namespace
}  // namespace shardplan::compiled
