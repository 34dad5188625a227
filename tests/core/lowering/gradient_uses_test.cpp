// Gradients of a weight that the embedding and the head share.
#include "lowering/gradient_uses.h"

#include <gtest/gtest.h>

#include "load/precision.h"
#include "lowering/lower.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

constexpr std::int64_t kWords = 65536, kHidden = 512;
constexpr std::int64_t kTable = 2 * kWords * kHidden;  // bytes

Plan plan_of(std::int64_t accumulation) {
  Plan plan;
  plan.framework.kind = FrameworkKind::single;
  plan.precision = precision_preset("bf16-pure");
  plan.loss = LossKind::fused_linear;
  plan.checkpointing = Checkpointing::full;
  plan.workload.micro_batch = 1;
  plan.workload.sequence_length = 128;
  plan.workload.gradient_accumulation = accumulation;
  return plan;
}

Model llama(const Plan& plan, bool tied) {
  return model_of(Json{{"model_type", "llama"},
                       {"hidden_size", kHidden},
                       {"intermediate_size", 1024},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 8},
                       {"vocab_size", kWords},
                       {"tie_word_embeddings", tied}}
                      .dump(),
                  build_options(plan));
}

PhaseBytes backward(std::int64_t accumulation, bool tied) {
  const Plan plan = plan_of(accumulation);
  const Model model = llama(plan, tied);
  return simulate_memory(lower(model, plan, run_segments(model, plan), 0)).of(Phase::backward);
}

TEST(GradientUses, TheFirstOfATiedWeightWaitsForTheLast) {
  const Plan plan = plan_of(1);
  const Model model = llama(plan, true);
  const ModelRun run = run_segments(model, plan);
  const std::vector<SegmentRepeat> repeats = whole_segments(run);
  GradientUses uses(model, run, repeats);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(uses.next(0), GradientUse::first);
    EXPECT_EQ(uses.next(0), GradientUse::last);
    EXPECT_EQ(uses.next(1), GradientUse::only);
  }
}

TEST(GradientUses, OfAPassOverAPartCountsThatPartAlone) {
  const Plan plan = plan_of(1);
  const Model model = llama(plan, true);
  const ModelRun run = run_segments(model, plan);
  GradientUses uses(model, run, {{0, 1}});
  EXPECT_EQ(uses.next(0), GradientUse::only);
}

// At the end of a pass: the head's gradient waits, the table's is made, and from the second
// micro-batch on there is the sum of those before.
TEST(GradientUses, WaitsBesideTheGradientOfEarlierMicroBatches) {
  EXPECT_GE(backward(1, true).peak - backward(1, true).end, kTable);
  EXPECT_EQ(backward(2, true).peak - backward(1, true).peak, kTable);
  EXPECT_EQ(backward(2, true).end, backward(1, true).end);
  EXPECT_EQ(backward(3, true).peak, backward(2, true).peak);
}

TEST(GradientUses, NothingWaitsWhereNothingIsTied) {
  EXPECT_LT(backward(2, false).peak - backward(2, false).end, kTable + kTable / 64);
}

/// Live blocks of gradients that `events` leave.
std::int64_t left(const std::vector<Event>& events) {
  std::int64_t count = 0;
  for (const Event& e : events) {
    if (e.category != Category::gradients) continue;
    if (e.kind == Event::Kind::alloc) ++count;
    if (e.kind == Event::Kind::free) --count;
  }
  return count;
}

TEST(GradientUses, WhatIsAddedStaysUntilItsNodeIsDone) {
  const Plan plan = plan_of(2);
  const Model model = llama(plan, false);
  const ModelRun run = run_segments(model, plan);
  GradientUses uses(model, run, whole_segments(run));
  Program program = program_of(run);
  ProgramBuilder b(program);
  for (const bool adds : {false, true}) {
    program.events.clear();
    uses.arrive(b, 1, kTable, adds);
    EXPECT_EQ(left(program.events), 1);
    uses.added(b, 1, kTable);
    EXPECT_EQ(left(program.events), adds ? 0 : 1);
  }
}

// The sum is the newest of three tensors, and the one that stays.
TEST(GradientUses, TheSumOfATiedWeightsGradientsStays) {
  const Plan plan = plan_of(2);
  const Model model = llama(plan, true);
  const ModelRun run = run_segments(model, plan);
  GradientUses uses(model, run, whole_segments(run));
  Program program = program_of(run);
  ProgramBuilder b(program);
  for (const bool adds : {false, true}) {
    program.events.clear();
    uses.arrive(b, 0, kTable, adds);
    uses.arrive(b, 0, kTable, adds);
    EXPECT_EQ(left(program.events), 2);
    uses.summed(b, 0, kTable);
    EXPECT_EQ(left(program.events), adds ? 0 : 1);
    EXPECT_EQ(program.events.back().oldest, !adds);
  }
}

}  // namespace
}  // namespace shardplan
