// What building a model and its engine passes through the allocator, which stays in its cache where
// nobody gives it back.
#include <gtest/gtest.h>

#include "lowering/lower.h"
#include "lowering/segments.h"
#include "program/program.h"
#include "small_llama.h"
#include "trainers/registry.h"

namespace shardplan::build_history_test {
namespace {

Plan trained_by(Plan plan, std::string_view name) {
  for (const TrainerDescription* trainer : trainers())
    if (trainer->name == name) plan.trainer = trainer;
  return plan;
}

/// Bytes that building has and gives up again, and the largest such block.
struct Passing {
  std::int64_t bytes = 0, largest = 0;
};

Passing passing(const Plan& plan, Category category) {
  const Model model = small_llama::llama(plan, 4096);
  Passing sum;
  for (const Event& e : lower(model, plan, run_segments(model, plan), 0).build) {
    if (e.kind != Event::Kind::free || e.category != category) continue;
    sum.bytes += e.bytes * e.count;
    sum.largest = std::max(sum.largest, e.bytes);
  }
  return sum;
}

constexpr std::int64_t kEmbedding = 4096 * small_llama::kHidden;
constexpr std::int64_t kNorms = (2 * small_llama::kLayers + 1) * small_llama::kHidden;
constexpr std::int64_t kParameters =
    2 * kEmbedding + small_llama::kLayers * small_llama::kWeights + kNorms;

// The cache is emptied before each optimizer group becomes one buffer, so that only the last
// group's tensors stay cached: all of them where a ds_config names the optimizer of HF Trainer,
// which makes one group (stage_1_and_2.py, __init__; transformers/integrations/deepspeed.py).
TEST(BuildHistory, HasAllTensorsOfALoneOptimizerGroup) {
  for (const int stage : {1, 2}) {
    Plan plan = trained_by(zero_plan(stage, "bf16-master", 2), "hf_trainer");
    // As the program made them, in 16 bits, what masters are cast from, of half of them each.
    EXPECT_EQ(passing(plan, Category::parameters).bytes, (4 + 2 + 1) * kParameters);
    plan.framework.deepspeed.model_dtype = DType::bf16;
    EXPECT_EQ(passing(plan, Category::parameters).bytes, (2 + 1) * kParameters);
    plan.framework.deepspeed.optimizer_from_program = true;  // two groups, by decay
    EXPECT_EQ(passing(plan, Category::parameters).bytes, 0);
  }
}

TEST(BuildHistory, HasNoLoneGroupOfTrainersThatGroupThemselves) {
  const Plan plan = trained_by(zero_plan(2, "bf16-master", 2), "openrlhf");
  EXPECT_EQ(passing(plan, Category::parameters).bytes, 0);
}

// fully_shard has the whole tensors of its call on the GPU (_fully_shard.py).
TEST(BuildHistory, HasEveryTensorWholeUnderFsdp2) {
  const Plan loop = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 2);
  EXPECT_EQ(passing(loop, Category::parameters).bytes, 0);
  const Passing whole = passing(trained_by(loop, "hf_trainer"), Category::parameters);
  EXPECT_EQ(whole.bytes, 4 * kParameters);
  EXPECT_EQ(whole.largest, 4 * kEmbedding);
}

}  // namespace
}  // namespace shardplan::build_history_test
