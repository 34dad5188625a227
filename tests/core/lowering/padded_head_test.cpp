// A compiled head whose words 8 does not divide: its products are aligned, and timed before.
#include <gtest/gtest.h>

#include <algorithm>

#include "lowering/lower.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"
#include "trainers/description.h"
#include "trainers/registry.h"

namespace shardplan::padded_head_test {
namespace {

constexpr auto kConfig = R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 1024,
                             "num_attention_heads": 16, "num_hidden_layers": 2,
                             "vocab_size": 32001})";

Plan compiled_plan() {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = 4;
  plan.workload.sequence_length = 1024;
  plan.compile = Compile{};
  return plan;
}

/// With adapters over checkpointed blocks, as HF Trainer runs it: the embeddings are told to need a
/// gradient.
Plan adapted_plan() {
  Plan plan = compiled_plan();
  plan.workload.lora = Lora{16, {"query", "q_proj"}};
  plan.checkpointing = Checkpointing::full;
  for (const TrainerDescription* trainer : trainers())
    if (trainer->name == "hf_trainer") plan.trainer = trainer;
  return plan;
}

Program lowered(const std::string& config, const Plan& plan) {
  const Model model = model_of(config, {.lora = plan.workload.lora});
  return lower(model, plan, run_segments(model, plan), 0);
}

Program compiled(const std::string& config) {
  return lowered(config, compiled_plan());
}

/// Where the trials stand among a program's events.
std::ptrdiff_t trials_of(const Program& program) {
  const auto found =
      std::find_if(program.events.begin(), program.events.end(), [&](const Event& e) {
        return e.kind == Event::Kind::once &&
               !program.once[static_cast<std::size_t>(e.count)].makes_residents;
      });
  return found - program.events.begin();
}

bool computes_before(const Program& program, std::ptrdiff_t end) {
  return std::any_of(program.events.begin(), program.events.begin() + end,
                     [](const Event& e) { return e.kind == Event::Kind::compute; });
}

std::int64_t widest_product(const Program& program) {
  std::int64_t widest = 0;
  for (const Kernel& k : program.kernels)
    if (k.kind == KernelKind::product) widest = std::max({widest, k.m, k.n, k.k});
  return widest;
}

TEST(PaddedHead, MultipliesWithRowsThatAreAligned) {
  EXPECT_EQ(widest_product(compiled(kConfig)), 32008);
}

TEST(PaddedHead, IsTimedInTheFirstStepAlone) {
  const Program program = compiled(kConfig);
  const auto timed = std::count_if(
      program.once.begin(), program.once.end(),
      [](const EventsOfOneStep& e) { return !e.makes_residents && e.workspace == 0; });
  EXPECT_EQ(timed, 1);
  Program without = program;
  std::erase_if(without.events, [&](const Event& e) {
    return e.kind == Event::Kind::once &&
           !program.once[static_cast<std::size_t>(e.count)].makes_residents;
  });
  EXPECT_EQ(simulate_memory(program).peak, simulate_memory(without).peak);
}

// Allocator histories of a compiled RoBERTa with adapters: a graph of its own, which is compiled
// when the layers have run.
TEST(PaddedHead, BehindToldEmbeddingsIsTimedWhenTheLayersHaveRun) {
  const Program whole = compiled(kConfig), apart = lowered(kConfig, adapted_plan());
  EXPECT_FALSE(computes_before(whole, trials_of(whole)));
  ASSERT_LT(trials_of(apart), std::ssize(apart.events));
  EXPECT_TRUE(computes_before(apart, trials_of(apart)));
}

constexpr auto kEncoder = R"({"model_type": "xlm-roberta", "hidden_size": 256,
                              "intermediate_size": 1024, "num_attention_heads": 4,
                              "num_hidden_layers": 2, "vocab_size": 250002,
                              "max_position_embeddings": 1026, "type_vocab_size": 1})";

// Rows of 250,002 are even, so that a trained head's gradient is kept as it is for the weight's
// product; a frozen one's is copied and let go, before the copy of the weight is made.
TEST(PaddedHead, FrozenWithABiasCopiesTheGradientFirst) {
  const Program program = lowered(kEncoder, adapted_plan());
  const std::int64_t logits = 2LL * 4096 * 250002, table = 2LL * 256 * 250002;
  const std::int64_t peak = simulate_memory(program).peak - total_bytes(program.resident);
  EXPECT_LT(peak, 3 * logits + table);
}

}  // namespace
}  // namespace shardplan::padded_head_test
