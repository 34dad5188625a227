// What FSDP2 gathers of each unit, and what is alive while it reduces one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "frameworks/fsdp2/units.h"
#include "lowering/lower.h"
#include "lowering/segments.h"
#include "program/program.h"
#include "simulator/memory.h"
#include "small_llama.h"
#include "support/plan_testing.h"
#include "trainers/registry.h"

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

using small_llama::kFfn, small_llama::kHidden;

Model of_four_layers(const Plan& plan, const char* type, std::int64_t words) {
  return model_of(Json{{"model_type", type},
                       {"hidden_size", kHidden},
                       {"intermediate_size", kFfn},
                       {"num_hidden_layers", 4},
                       {"num_attention_heads", 8},
                       {"num_key_value_heads", 8},
                       {"tie_word_embeddings", true},
                       {"vocab_size", words}}
                      .dump(),
                  build_options(plan));
}

Plan trained_by(std::string_view trainer) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 2);
  plan.trainer = *std::ranges::find(trainers(), trainer, &TrainerDescription::name);
  plan.workload.sequence_length = 16;
  plan.checkpointing = Checkpointing::full;
  return plan;
}

/// accelerate gives fully_shard the norm, the embeddings and the head in this order, so that the
/// table's gradient stays named; a root has its parameters as the model has them, the norm's last.
TEST(Fsdp2Reduction, NamesATiedTableLastUnderAccelerate) {
  constexpr std::int64_t kWords = 1000;
  const auto last = [&](std::string_view trainer) {
    const Plan plan = trained_by(trainer);
    const Model model = of_four_layers(plan, "llama", kWords);
    const Fsdp2Units units(model, plan, run_segments(model, plan));
    return model.parameters[static_cast<std::size_t>(units.root().last_trained)].numel;
  };
  EXPECT_EQ(last("hf_trainer"), kWords * kHidden);
  EXPECT_EQ(last("loop"), kHidden);
}

/// Blocks come before the embeddings, those without another of their kind too (every fourth layer
/// of SmolLM3 has no positions), and the libraries' workspaces behind both, in the first step.
TEST(Fsdp2Build, ShardsBlocksFirstAndHasNoWorkspaceYet) {
  constexpr std::int64_t kWords = 100'000;
  const Plan plan = trained_by("hf_trainer");
  const Model model = of_four_layers(plan, "smollm3", kWords);
  const Program program = lower(model, plan, run_segments(model, plan), 0);
  ASSERT_FALSE(program.build.empty());
  bool table = false;
  for (const Event& e : program.build) {
    EXPECT_NE(e.category, Category::workspace);
    if (e.category != Category::parameters) continue;
    const bool of_block =
        e.bytes == small_llama::kHidden * small_llama::kFfn * 4;  // an MLP's weight, whole
    EXPECT_FALSE(of_block && table);
    table = table || e.bytes == kWords * small_llama::kHidden * 4;
  }
  EXPECT_TRUE(table);
  const auto made = [](const EventsOfOneStep& once) {
    return std::ranges::count(once.events, Category::workspace, &Event::category);
  };
  std::int64_t workspaces = 0;
  for (const EventsOfOneStep& once : program.once) workspaces += made(once);
  EXPECT_EQ(workspaces, 2);
}

}  // namespace
}  // namespace shardplan::fsdp2_units_test
