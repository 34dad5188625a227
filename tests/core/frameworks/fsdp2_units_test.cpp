// What FSDP2 gathers of each unit, and what is alive while it reduces one.
#include <gtest/gtest.h>

#include "lowering/lower.h"
#include "lowering/segments.h"
#include "program/program.h"
#include "simulator/memory.h"
#include "small_llama.h"

namespace shardplan::fsdp2_units_test {
namespace {

// Each block and the root once a pass, or once where they stay gathered: nothing is gathered behind
// the last block of either pass (_fsdp_param_group.py, pre_forward and _backward_prefetch).
TEST(Fsdp2Gathers, AreOneAPassAndUnit) {
  for (const bool reshards : {true, false}) {
    Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 2);
    plan.framework.fsdp2.reshard_after_forward = reshards;
    const Model model = small_llama::llama(plan, 1024);
    std::int64_t gathers = 0;
    for_each_event(
        lower(model, plan, run_segments(model, plan), 0), [&](const Event& e, std::int64_t times) {
          if (e.kind == Event::Kind::collective && e.collective == Collective::all_gather)
            gathers += times * e.count;
        });
    EXPECT_EQ(gathers, (reshards ? 2 : 1) * (small_llama::kLayers + 1));
  }
}

/// Embedding and head of the root, by far the largest: shards in fp32 of both, of both states of
/// AdamW and of both gradients; what is reduced in bf16, and its result; and the head's gradient,
/// which a loop over the root's still names (_fsdp_collectives.py, foreach_reduce). A run of
/// Pythia 1.4B on two GPUs had it.
TEST(Fsdp2Reduction, HasTheLastParametersGradientBesideItsResult) {
  constexpr std::int64_t kVocabulary = 4'000'000;
  constexpr double kTable = kVocabulary * small_llama::kHidden;
  for (const std::int64_t ranks : {1, 2}) {
    Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", ranks);
    plan.workload.sequence_length = 16;
    plan.checkpointing = Checkpointing::full;
    const Model model = small_llama::llama(plan, kVocabulary);
    const Program program = lower(model, plan, run_segments(model, plan), 0);
    const double share = 1 / static_cast<double>(ranks), named = ranks > 1 ? 2 : 0;
    EXPECT_NEAR(static_cast<double>(simulate_memory(program).peak) / kTable,
                4 * 8 * share + 4 + 4 * share + named, 0.3)
        << ranks;
  }
}

}  // namespace
}  // namespace shardplan::fsdp2_units_test
