// A tower of images beside a text model that FSDP2 divides, as NeMo Automodel has it.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>

#include "frameworks/fsdp2/units.h"
#include "lowering/lower.h"
#include "lowering/pipeline/stages.h"
#include "parallel/problem.h"
#include "parallel/shard.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan::fsdp2_towers_test {
namespace {

constexpr std::int64_t kHidden = 256, kTower = 128, kTowerLayers = 3, kLayers = 4, kTokens = 512;

Plan images_plan(std::int64_t ranks) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-pure", ranks);
  plan.workload.sequence_length = kTokens;
  plan.workload.gradient_accumulation = 4;
  plan.workload.images.per_sample = 1;
  plan.workload.images.frozen = FrozenParts::tower;
  return plan;
}

/// LLaVA with CLIP before Llama: 16 rows of an image.
Model llava(const Plan& plan) {
  const Json text{{"model_type", "llama"},
                  {"hidden_size", kHidden},
                  {"intermediate_size", kHidden},
                  {"num_hidden_layers", kLayers},
                  {"num_attention_heads", 8},
                  {"num_key_value_heads", 4},
                  {"vocab_size", 1024}};
  const Json tower{{"model_type", "clip_vision_model"},
                   {"hidden_size", kTower},
                   {"intermediate_size", 2 * kTower},
                   {"num_hidden_layers", kTowerLayers},
                   {"num_attention_heads", 4},
                   {"image_size", 56},
                   {"patch_size", 14}};
  const Model whole = model_of(Json{{"model_type", "llava"},
                                    {"vision_feature_layer", -1},
                                    {"text_config", text},
                                    {"vision_config", tower}}
                                   .dump(),
                               build_options(plan));
  EXPECT_EQ(division_problem(whole, plan), std::nullopt);
  return is_sharded(plan) ? shard(whole, plan) : whole;
}

std::int64_t elements_of(const Model& model, std::string_view part) {
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.name.find(part) != std::string::npos) sum += p.numel * repeat;
  });
  return sum;
}

TEST(Fsdp2Towers, AreWholeWhereTensorRanksDivideTheText) {
  Plan plan = images_plan(4);
  const Model whole = llava(plan);
  plan.parallel.tensor = 2;
  const Model part = llava(plan);
  for (const char* name : {"vision_tower", "multi_modal_projector"}) {
    EXPECT_GT(elements_of(whole, name), 0);
    EXPECT_EQ(elements_of(part, name), elements_of(whole, name)) << name;
  }
  EXPECT_EQ(2 * elements_of(part, "language_model.layers.{}.self_attn"),
            elements_of(whole, "language_model.layers.{}.self_attn"));
  EXPECT_EQ(2 * elements_of(part, "language_model.layers.{}.mlp"),
            elements_of(whole, "language_model.layers.{}.mlp"));
}

TEST(Fsdp2Towers, SeeWholeImagesWhereRanksShareASequence) {
  Plan plan = images_plan(4);
  const Model whole = llava(plan);
  const ModelRun alone = run_segments(whole, plan);
  plan.parallel.context = 2;
  const Model part = llava(plan);
  const ModelRun shared = run_segments(part, plan);
  ASSERT_EQ(whole.segments.size(), part.segments.size());
  for (std::size_t i = 0; i < whole.segments.size(); ++i) {
    const std::int64_t before = alone.segments[i].forward.output_bytes;
    const std::int64_t now = shared.segments[i].forward.output_bytes;
    const bool last = i + 1 == whole.segments.size();
    const bool placed = whole.segments[i].name == "images among tokens";
    if (whole.segments[i].is_block() || placed) {
      EXPECT_EQ(2 * now, before) << whole.segments[i].name;  // a rank's own tokens
    } else if (!last) {
      EXPECT_EQ(now, before) << whole.segments[i].name;
    }
  }
}

TEST(Fsdp2Towers, AreOnTheFirstStage) {
  Plan plan = images_plan(4);
  plan.parallel.pipeline = 2;
  const Model model = llava(plan);
  const Model first = parameters_of(model, stage_of(model, plan.parallel, 0));
  const Model second = parameters_of(model, stage_of(model, plan.parallel, 1));
  EXPECT_EQ(elements_of(first, "vision_tower"), elements_of(model, "vision_tower"));
  EXPECT_EQ(elements_of(second, "vision_tower"), 0);
  EXPECT_EQ(first.parameter_count() + second.parameter_count(), model.parameter_count());
  EXPECT_EQ(2 * elements_of(first, "language_model.layers"),
            elements_of(model, "language_model.layers"));
}

std::int64_t peak_of(const Plan& plan) {
  const Model model = llava(plan);
  return simulate_memory(lower(model, plan, run_segments(model, plan), 0)).peak;
}

TEST(Fsdp2Towers, LeaveTheLiveBytesAsTheyFoundThem) {
  for (const FrozenParts frozen : {FrozenParts::nothing, FrozenParts::tower})
    for (const FrozenTower units : {FrozenTower::blocks, FrozenTower::root})
      for (const auto& [tensor, context, pipeline] :
           {std::tuple{1, 1, 1}, std::tuple{2, 1, 1}, std::tuple{1, 2, 1}, std::tuple{2, 1, 2},
            std::tuple{2, 2, 2}}) {
        Plan plan = images_plan(8);
        plan.workload.images.frozen = frozen;
        plan.framework.fsdp2.frozen_tower = units;
        plan.framework.fsdp2.reshard_after_forward = pipeline == 1;
        plan.parallel.tensor = tensor;
        plan.parallel.context = context;
        plan.parallel.pipeline = pipeline;
        const Model model = llava(plan);
        const ModelRun run = run_segments(model, plan);
        for (std::int64_t rank = 0; rank < 8; rank += 8 / pipeline) {
          const Program program = lower(model, plan, run, rank);
          EXPECT_EQ(simulate_memory(program).phases[2].end, total_bytes(program.resident))
              << tensor << ' ' << context << ' ' << pipeline << ' ' << rank;
        }
      }
}

/// Tower and projector of the root's unit are gathered for the whole step.
TEST(Fsdp2Towers, ThatAreFrozenAreInTheRootWhereAJobSaysSo) {
  Plan plan = images_plan(4);
  const Model model = llava(plan);
  const ModelRun run = run_segments(model, plan);
  const Fsdp2Units apart(model, plan, run);
  plan.framework.fsdp2.frozen_tower = FrozenTower::root;
  const Fsdp2Units joined(model, plan, run);
  const std::int64_t layers = 2 * elements_of(model, "vision_tower.encoder.layers");
  ASSERT_GT(layers, 0);
  EXPECT_GE(joined.root().unsharded, apart.root().unsharded + layers);
  EXPECT_GT(peak_of(plan), peak_of(images_plan(4)));
  plan.workload.images.frozen = FrozenParts::nothing;
  const Model trained = llava(plan);
  const ModelRun run_of_trained = run_segments(trained, plan);
  EXPECT_EQ(Fsdp2Units(trained, plan, run_of_trained).root().unsharded, apart.root().unsharded);
}

TEST(Fsdp2Towers, AreNotDividedByDeepSpeed) {
  Plan plan = images_plan(4);
  plan.workload.images.per_sample = 0;
  const Model model = llava(plan);
  plan.framework.kind = FrameworkKind::deepspeed;
  plan.parallel.tensor = 2;
  const auto problem = division_problem(model, plan);
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->message.text.find("reads images"), std::string::npos);
}

}  // namespace
}  // namespace shardplan::fsdp2_towers_test
