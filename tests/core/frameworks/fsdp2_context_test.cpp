// Sequences divided under FSDP2, as PyTorch's context_parallel reads them.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "frameworks/registry.h"
#include "lowering/lower.h"
#include "parallel/problem.h"
#include "parallel/shard.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan::fsdp2_context_test {
namespace {

constexpr std::int64_t kHeads = 16, kHeadDim = 64, kHidden = kHeads * kHeadDim, kTokens = 4096;
constexpr std::int64_t kLayers = 2;

Plan context_plan(std::int64_t degree, KeyRotation rotation = KeyRotation::allgather,
                  std::int64_t ranks = 4) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-pure", ranks);
  plan.workload.sequence_length = kTokens;
  plan.parallel.context = degree;
  plan.framework.fsdp2.rotation = rotation;
  return plan;
}

Model whole_llama(const Plan& plan, std::int64_t key_heads = kHeads) {
  return model_of(Json{{"model_type", "llama"},
                       {"hidden_size", kHidden},
                       {"intermediate_size", 4 * kHidden},
                       {"num_hidden_layers", kLayers},
                       {"num_attention_heads", kHeads},
                       {"num_key_value_heads", key_heads},
                       {"vocab_size", 512}}
                      .dump(),
                  build_options(plan));
}

Model llama(const Plan& plan, std::int64_t key_heads = kHeads) {
  const Model whole = whole_llama(plan, key_heads);
  return is_sharded(plan) ? shard(whole, plan) : whole;
}

/// Bytes at once while blocks of keys are read, beside what was there before. `earlier`: tensors
/// that are made for it before the first buffer.
std::int64_t rise_of_blocks(const std::vector<TapeEvent>& events, std::size_t earlier) {
  const auto is_buffer = [](const TapeEvent& e) {
    return e.category == Category::communication_buffers &&
           (e.kind == TapeEvent::Kind::alloc || e.kind == TapeEvent::Kind::free);
  };
  std::size_t first = events.size(), last = 0;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (is_buffer(events[i])) {
      first = std::min(first, i);
      last = i;
    }
  std::int64_t live = 0, before = 0, peak = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const bool inside = i + earlier >= first;
    if (!inside) before = live;
    if (events[i].kind == TapeEvent::Kind::alloc) live += events[i].bytes;
    if (events[i].kind == TapeEvent::Kind::free) live -= events[i].bytes;
    if (inside) peak = std::max(peak, live);
  }
  return peak - before;
}

struct Counted {
  KeyRotation rotation;
  std::int64_t ranks, key_heads, forward, backward;
};

/// count_key_blocks.py with PyTorch 2.11: bytes at once of both passes, the forward pass with its
/// result; --ranks R --key-heads K --rotate METHOD.
constexpr std::array kCounted{
    Counted{KeyRotation::allgather, 2, 16, 54920192, 109051904},
    Counted{KeyRotation::allgather, 4, 16, 35849216, 65011712},
    Counted{KeyRotation::allgather, 4, 4, 23266304, 21495808},
    Counted{KeyRotation::alltoall, 4, 16, 27460608, 54525952},
};

TEST(ContextBlocks, TakeWhatPyTorchsOwnRingTakes) {
  for (const Counted& c : kCounted) {
    const Plan plan = context_plan(c.ranks, c.rotation, c.ranks);
    const Model model = llama(plan, c.key_heads);
    const ModelRun run = run_segments(model, plan);
    const SegmentRun& block = run.segments[1];
    const std::int64_t queries = kTokens / c.ranks * kHidden * 2;
    const std::int64_t keys = 2 * queries * c.key_heads / kHeads;
    const std::int64_t row_sums = kTokens / c.ranks * kHeads * 4;
    // The counter has two row sums more, of the merge, and two numbers of the kernel's generator,
    // and the GPU what it sends until that has arrived. Before the first buffer keys are made
    // contiguous.
    const std::int64_t sent = c.rotation == KeyRotation::alltoall ? keys : 0;
    EXPECT_EQ(rise_of_blocks(block.forward.forward, 1) + queries,
              c.forward - 2 * row_sums - 2 * kAllocationUnit + sent)
        << c.ranks << " " << c.key_heads;
    // The kernel's own accumulators are not in the count.
    const std::int64_t rise = rise_of_blocks(block.backward.backward, 3);
    EXPECT_GE(rise, c.backward) << c.ranks << " " << c.key_heads;
    EXPECT_LE(rise, c.backward + 10 * queries + 2 * keys) << c.key_heads;
  }
}

std::map<std::string, std::int64_t> traffic_of(const Plan& plan) {
  const Model model = llama(plan);
  std::map<std::string, std::int64_t> bytes;
  for_each_event(lower(model, plan, run_segments(model, plan), 0),
                 [&](const Event& e, std::int64_t times) {
                   if (e.kind == Event::Kind::collective)
                     bytes[std::string(e.what)] += e.bytes * times;
                 });
  return bytes;
}

TEST(ContextBlocks, GatherKeysInBothPassesAndPassTheirGradientsOnInFp32) {
  const auto traffic = traffic_of(context_plan(4));
  const std::int64_t all = 2 * kTokens * kHidden * 2;  // keys and values, of all ranks
  EXPECT_EQ(traffic.at("key and value all-gather"), 2 * kLayers * all);
  // Four rounds of a rank's own in 4 bytes, as a ring of three passes.
  const std::int64_t rounds = kLayers * 4 * (all / 4 * 2);
  const std::int64_t ring = traffic.at("ring of keys and values") * 3;
  EXPECT_LE(ring, rounds);
  EXPECT_GE(ring, rounds - 3 * kLayers);  // a third of a byte is none
}

TEST(ContextBlocks, StatesAreDividedOverSamplesAndPiecesOfThem) {
  const auto parameters = [](const Plan& plan) {
    std::int64_t sum = 0;
    const Model model = llama(plan);
    for (const Event& e : lower(model, plan, run_segments(model, plan), 0).resident)
      if (e.category == Category::parameters) sum += e.bytes * e.count;
    return sum;
  };
  const Plan divided = context_plan(4, KeyRotation::allgather, 8);
  EXPECT_EQ(parameters(divided), parameters(context_plan(1, KeyRotation::allgather, 8)));
  EXPECT_EQ(divided.shard_ranks(), 8);
}

TEST(ContextBlocks, AttentionWithAMaskIsRefusedByItsKey) {
  const Plan plan = context_plan(2);
  const Model windows = model_of(R"({"model_type": "gemma2", "num_hidden_layers": 2,
      "sliding_window": 1024})",
                                 build_options(plan));
  const auto problem = division_problem(windows, plan);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->key, "parallel.context");
  EXPECT_FALSE(division_problem(whole_llama(plan), plan));
}

TEST(ContextBlocks, TensorRanksHaveTheirHeadsOfTheKeys) {
  Plan plan = context_plan(2, KeyRotation::allgather, 8);
  const std::int64_t alone = traffic_of(plan).at("key and value all-gather");
  plan.parallel.tensor = 2;
  EXPECT_EQ(traffic_of(plan).at("key and value all-gather"), alone / 2);
  const Model model = llama(plan);
  const MemoryProfile memory = simulate_memory(lower(model, plan, run_segments(model, plan), 0));
  EXPECT_GT(memory.peak, 0);
}

}  // namespace
}  // namespace shardplan::fsdp2_context_test
