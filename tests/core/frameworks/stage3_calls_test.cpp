// What stage 3's Python takes of the host, by its windows and buckets.
#include "frameworks/deepspeed/stage3_calls.h"

#include <gtest/gtest.h>

#include "core/frameworks/small_llama.h"
#include "lowering/lower.h"
#include "support/program_testing.h"

namespace shardplan::stage3_calls_test {
namespace {

using small_llama::kLayers;

constexpr std::int64_t kLinears = 7 * kLayers + 1, kTensors = 9 * kLayers + 3;

struct Windows {
  std::int64_t persistent = 0, prefetch = 0, bucket = 0;
};

/// Calls of the engine in a step of two ranks.
std::int64_t engine_calls(const Windows& windows, Checkpointing checkpointing) {
  Plan plan = zero_plan(3, "bf16-master", 2);
  plan.checkpointing = checkpointing;
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.param_persistence_threshold = windows.persistent;
  zero.prefetch_bucket_size = windows.prefetch;
  zero.reduce_bucket_size = windows.bucket;
  const Model model = small_llama::llama(plan, 4096);
  const Program program = lower(model, plan, run_segments(model, plan), 0);
  std::vector<Event> events;
  unroll(program, 0, program.events.size(), events);
  std::int64_t calls = 0;
  for (const Event& e : events) {
    if (e.kind != Event::Kind::compute) continue;
    for (std::int64_t i = e.first; i < e.first + e.count; ++i) {
      const Kernel& k = program.kernels[static_cast<std::size_t>(i)];
      if (k.issue == Issue::engine) calls += k.calls;
    }
  }
  return calls;
}

constexpr std::int64_t kNever = 1'000'000'000;
constexpr Windows kWhole{.persistent = kNever, .prefetch = kNever, .bucket = kNever};

TEST(Stage3Calls, WhereNothingIsGatheredAreOfModulesAndGradients) {
  EXPECT_EQ(engine_calls(kWhole, Checkpointing::none),
            kTensors * (2 * kModuleCalls + kGradientCalls));
}

TEST(Stage3Calls, OfABlockThatIsComputedAgainAreOfOnePassMore) {
  EXPECT_EQ(engine_calls(kWhole, Checkpointing::full) - engine_calls(kWhole, Checkpointing::none),
            9 * kLayers * kModuleCalls);
}

TEST(Stage3Calls, OfATensorThatIsGatheredAreItsOwnAndThoseOfItsGather) {
  const auto gathered = [](std::int64_t prefetch) {
    return engine_calls({10'000, prefetch, kNever}, Checkpointing::none) -
           engine_calls(kWhole, Checkpointing::none);
  };
  // Linears and the embedding, for both passes; of a bucket without end a gather is no part.
  EXPECT_EQ(gathered(kNever), (kLinears + 1) * kTensorCalls);
  EXPECT_EQ(gathered(1), (kLinears + 1) * (kTensorCalls + kGatherCalls));
}

TEST(Stage3Calls, OfABucketThatIsFullAreThoseOfAReduction) {
  Windows small = kWhole;
  small.bucket = 1;
  EXPECT_EQ(engine_calls(small, Checkpointing::none) - engine_calls(kWhole, Checkpointing::none),
            (kTensors - 1) * kFlushCalls);
}

}  // namespace
}  // namespace shardplan::stage3_calls_test
