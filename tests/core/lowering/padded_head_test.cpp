// A compiled head whose words 8 does not divide: its products are aligned, and timed before.
#include <gtest/gtest.h>

#include <algorithm>

#include "lowering/lower.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan::padded_head_test {
namespace {

constexpr auto kConfig = R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 1024,
                             "num_attention_heads": 16, "num_hidden_layers": 2,
                             "vocab_size": 32001})";

Program compiled(const std::string& config) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = 4;
  plan.workload.sequence_length = 1024;
  plan.compile = Compile{};
  const Model model = model_of(config);
  return lower(model, plan, run_segments(model, plan), 0);
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

}  // namespace
}  // namespace shardplan::padded_head_test
