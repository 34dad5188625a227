// Weights that FSDP2 gathers in the 8 bits in which torchao's linears multiply.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/fsdp2/gathers.h"
#include "frameworks/fsdp2/problems.h"
#include "frameworks/fsdp2/units.h"
#include "lowering/lower.h"
#include "lowering/segments.h"
#include "program/program.h"
#include "small_llama.h"

namespace shardplan::fsdp2_float8_test {
namespace {

using small_llama::kHidden;
using small_llama::kWeights;

constexpr std::int64_t kRanks = 2, kVocabulary = 1024;

Plan fp8_plan(Float8Gather gather) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", kRanks);
  plan.precision.linear = LinearRecipe::fp8_tensorwise;
  plan.workload.sequence_length = 64;
  plan.framework.fsdp2.float8_all_gather = gather;
  return plan;
}

struct Lowered {
  explicit Lowered(const Plan& given)
      : plan(given),
        model(small_llama::llama(plan, kVocabulary)),
        run(run_segments(model, plan)),
        units(model, plan, run) {}
  const Fsdp2Unit& block() const {
    for (std::size_t s = 0; s < run.segments.size(); ++s)
      if (units.is_block(s)) return *units.of(s);
    throw std::logic_error("no block");
  }

  Plan plan;
  Model model;
  ModelRun run;
  Fsdp2Units units;
};

// torchao 0.18, fsdp_pre_all_gather: one byte an element of the block's linears; both norms stay in
// bf16. Gradients are made in bf16 as before.
TEST(Fsdp2Float8, GathersLinearsInOneByte) {
  const Lowered wide(fp8_plan(Float8Gather::none)), narrow(fp8_plan(Float8Gather::precomputed));
  // As FSDP2 itself counts of this block (tests/accuracy/measure/kept_tensors/count_float8_gathers.py).
  EXPECT_EQ(wide.block().gathered, 6'031'360);
  EXPECT_EQ(narrow.block().gathered, 3'016'704);
  EXPECT_EQ(wide.block().gathered, 2 * (kWeights + 2 * kHidden));
  EXPECT_EQ(narrow.block().gathered, kWeights + 2 * 2 * kHidden);
  EXPECT_EQ(narrow.block().unsharded, kWeights + 2 * 2 * kHidden);
  EXPECT_EQ(narrow.block().cast, narrow.block().gathered / kRanks);
  EXPECT_EQ(narrow.block().narrow_tensors, 7);
  EXPECT_EQ(narrow.block().trained_bytes, wide.block().trained_bytes);
  EXPECT_EQ(narrow.block().shards, wide.block().shards);
  EXPECT_EQ(narrow.units.root().gathered, wide.units.root().gathered);  // the head is as it was
}

/// By hand: a block is called with its input, a norm, q, k, v, cosines, sines, o, a norm, gate, up
/// and down; 1 to 4 and 7 to 11, from 0, are parameters. With a scale behind each linear's data,
/// that is at 2, 4, 6, 10, 13, 15 and 17: where a parameter was of q, k and o alone. What casts its
/// own weights keeps seven scales of one unit.
TEST(Fsdp2Float8, KeepsTurnedCopiesOfWhatAotautogradTakesForActivations) {
  const auto kept = [](Float8Gather gather) {
    Plan plan = fp8_plan(gather);
    plan.compile = Compile{.scope = CompileScope::block};
    const Lowered lowered(plan);
    std::int64_t bytes = 0;
    for (const SegmentRun& s : lowered.run.segments)
      if (s.segment->checkpointable)
        for (const TapeEvent& e : s.forward.forward)
          bytes += e.kind == TapeEvent::Kind::alloc  ? e.bytes
                   : e.kind == TapeEvent::Kind::free ? -e.bytes
                                                     : 0;
    return bytes;
  };
  EXPECT_EQ(kept(Float8Gather::precomputed) - kept(Float8Gather::none),
            kHidden * small_llama::kKeys + 3 * kHidden * small_llama::kFfn - 7 * kAllocationUnit);
}

TEST(Fsdp2Float8, FindsScalesOnceOrForEachGather) {
  const auto all_reduces = [](Float8Gather gather) {
    const Lowered lowered(fp8_plan(gather));
    std::int64_t calls = 0;
    for (const Event& e : lower(lowered.model, lowered.plan, lowered.run, 0).events)
      if (e.kind == Event::Kind::collective && e.collective == Collective::all_reduce)
        calls += e.count;
    return calls;
  };
  EXPECT_EQ(all_reduces(Float8Gather::none), 0);
  EXPECT_EQ(all_reduces(Float8Gather::precomputed), 1);
  EXPECT_GE(all_reduces(Float8Gather::dynamic), 2 * 7);
}

/// Bytes of kernels in fp32 over the shard of the block's weights: a product, the least and the
/// most, 8 bits; before them magnitudes and their largest.
TEST(Fsdp2Float8, CastsShardsOnTheGpu) {
  const auto bytes = [](Float8Gather gather) {
    const Lowered lowered(fp8_plan(gather));
    const Fsdp2 f(lowered.model, lowered.plan, lowered.run);
    double sum = 0;
    for (const Kernel& k : f.narrow_kernels(lowered.block(), gather == Float8Gather::dynamic))
      sum += k.bytes * k.calls;
    return sum;
  };
  constexpr double kShard = static_cast<double>(kWeights) / kRanks;
  EXPECT_DOUBLE_EQ(bytes(Float8Gather::precomputed), (8 + 8 + 5) * kShard);
  EXPECT_DOUBLE_EQ(bytes(Float8Gather::dynamic), (8 + 4 + 8 + 8 + 5) * kShard);
}

TEST(Fsdp2Float8, WantsOneScaleForEachWeight) {
  Plan plan = fp8_plan(Float8Gather::dynamic);
  EXPECT_FALSE(fsdp2_plan_problem(plan).has_value());
  plan.precision.linear = LinearRecipe::fp8_rowwise;
  ASSERT_TRUE(fsdp2_plan_problem(plan).has_value());
  EXPECT_THAT(fsdp2_plan_problem(plan)->message.text,
              testing::HasSubstr("only supports tensorwise scaling granularity"));
  plan.precision.linear = LinearRecipe::computed;
  EXPECT_TRUE(fsdp2_plan_problem(plan).has_value());
}

}  // namespace
}  // namespace shardplan::fsdp2_float8_test
