// What Inductor allocates to time products whose rows are not aligned, as the history of GPT-2
// medium's allocations had it on an H100 (8 x 1024 tokens, 50,257 words).
#include "program/compiled/trials.h"

#include <gtest/gtest.h>

namespace shardplan::compiled {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::vector<TapeEvent> head(bool trains) {
  return trial_events({{{8192, 1024, 50257}, 50264, DType::bf16, true, trains}});
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
  EXPECT_TRUE(trial_events({}).empty());
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

}  // namespace
}  // namespace shardplan::compiled
