// Bounds are admissible: no plan of a space needs less than they say.
#include <gtest/gtest.h>

#include <map>

#include "parallel/problem.h"
#include "questions/search/bounds.h"
#include "search_testing.h"

namespace shardplan {
namespace {

std::string shown(const SearchSpace& space, const Choice& choice) {
  std::string text;
  for (std::size_t a = 0; a < choice.size(); ++a)
    text += space.axes[a].name + " " + space.axes[a].values[choice[a]] + "; ";
  return text;
}

/// To the last bit.
void expect_same(const Estimate& a, const Estimate& b, const std::string& what) {
  EXPECT_EQ(a.allocated.point, b.allocated.point) << what;
  EXPECT_EQ(a.device.upper, b.device.upper) << what;
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    EXPECT_EQ(a.breakdown[c].at_peak, b.breakdown[c].at_peak) << what;
  for (const auto part :
       {&TimeEstimate::step_seconds, &TimeEstimate::compute_seconds,
        &TimeEstimate::exposed_communication_seconds, &TimeEstimate::exposed_copy_seconds,
        &TimeEstimate::optimizer_seconds, &TimeEstimate::idle_seconds,
        &TimeEstimate::speed_of_light_seconds, &TimeEstimate::mfu, &TimeEstimate::hfu})
    EXPECT_EQ(a.time.*part, b.time.*part) << what;
}

/// And that the passes of one plan serve every other with the same key.
void expect_admissible(const ModelVariants& models, const SearchSpace& space) {
  const Calibration calibration = load_calibration();
  Plan plan = space.base;
  Choice choice(space.axes.size(), 0);
  RuleCounts counts = no_counts(space);
  std::map<PassKey, Passes> known;
  const auto passes_of = [&](const Plan& p) -> const Passes& {
    const auto it = known.find(pass_key(p));
    if (it != known.end()) return it->second;
    return known.emplace(pass_key(p), run_passes(models.of(p), p, calibration.time)).first->second;
  };
  std::int64_t looked = 0;
  walk(space, plan, choice, 0, space.states_fixed, counts, [&] {
    const Plan lightest = lightest_member(space, plan);
    const StatesBound states =
        states_bound(models.of(lightest), lightest, passes_of(lightest), calibration);
    EXPECT_LE(states.parameter_bytes, states.resident_bytes);
    walk(space, plan, choice, space.states_fixed, space.work_fixed, counts, [&] {
      const Model& model = models.of(plan);
      ASSERT_FALSE(division_problem(model, plan)) << shown(space, choice);
      const Passes& passes = passes_of(plan);
      const WorkBound bound =
          work_bound(least_work(plan, passes, least_passes(passes), calibration.time), states);
      walk(space, plan, choice, space.work_fixed, space.axes.size(), counts, [&] {
        const Estimate quick = estimate(model, plan, calibration, ReservedMemory::ratio);
        expect_same(estimate(model, plan, passes, calibration, ReservedMemory::ratio), quick,
                    shown(space, choice));
        EXPECT_LE(bound.allocated_bytes, quick.allocated.point) << shown(space, choice);
        EXPECT_LE(bound.step_seconds, quick.time.step_seconds * (1 + 1e-9)) << shown(space, choice);
        const Verdict& v = quick.verdict;
        EXPECT_TRUE(states.host != Fit::does_not_fit || v.host.fit == Fit::does_not_fit);
        EXPECT_TRUE(states.nvme != Fit::does_not_fit || v.nvme.fit == Fit::does_not_fit);
        const Estimate full = estimate(model, plan, calibration);
        EXPECT_EQ(quick.allocated.point, live_peak(full));
        EXPECT_EQ(quick.time.step_seconds, full.time.step_seconds);
        EXPECT_LE(least_device_upper(plan, calibration, quick.allocated.point), full.device.upper);
        ++looked;
      });
    });
  });
  EXPECT_GT(looked, 500);
}

TEST(Bounds, HoldForEveryPlanOfADecoder) {
  AxisValues values = small_axes();
  values.accumulations = {1, 3};
  values.micro_batches = {1, 16};
  expect_admissible(small_llama(), make_space(small_llama(), small_plan(12, 2), values));
}

TEST(Bounds, HoldForEveryFrameworkAndPrecision) {
  AxisValues values = small_axes();
  values.frameworks = {FrameworkKind::deepspeed, FrameworkKind::fsdp2, FrameworkKind::ddp,
                       FrameworkKind::single};
  values.precisions = {"bf16-master", "bf16-autocast", "bf16-pure", "fp32", "fp16-master"};
  values.prefetch_buckets = {50'000'000};
  values.micro_batches = {2};
  expect_admissible(small_llama(), make_space(small_llama(), small_plan(8), values));
}

TEST(Bounds, HoldWithAFrozenBaseAndTiedEmbeddings) {
  const BuildOptions lora{.lora = Lora{.rank = 8, .targets = {"c_attn"}}};
  const Model model = model_of(R"({"model_type": "gpt2", "n_embd": 256, "n_layer": 4,
    "n_head": 4, "vocab_size": 5000})",
                               lora);
  Plan plan = small_plan(4);
  plan.workload.lora = lora.lora;
  expect_admissible(model, make_space(model, plan, small_axes()));
}

TEST(Bounds, HoldForAnEncoderAndDecoder) {
  const Model model = model_of(R"({"model_type": "t5", "d_model": 256, "d_ff": 512,
    "num_layers": 3, "num_heads": 4, "d_kv": 64, "vocab_size": 4000})");
  Plan plan = small_plan(4);
  plan.workload.sequence_length = plan.workload.target_length = 256;
  expect_admissible(model, make_space(model, plan, small_axes()));
}

TEST(Bounds, HoldForEveryDegreeOfMegatron) {
  const Model model = small_megatron_llama();
  AxisValues values = few_degrees();
  values.gpus = {4, 8};
  values.accumulations = {4, 8};
  expect_admissible(model, make_space(model, megatron_plan(24), values));
}

TEST(Bounds, HoldForSharedExperts) {
  const Model model = small_megatron_mixtral();
  AxisValues values = few_degrees();
  values.virtual_pipelines = values.contexts = {1};
  values.experts = {1, 2, 4, 8};
  values.gpus = {8};
  expect_admissible(model, make_space(model, megatron_plan(24), values));
}

TEST(Bounds, HoldForTheDegreesOfDeepSpeed) {
  AxisValues values = small_axes();
  values.tensors = values.ulysses = {1, 2};
  values.pipelines = {1, 2, 4};
  values.gpus = {2, 4};
  values.accumulations = {1, 6};
  values.optimizer_offloads = values.parameter_offloads = {OffloadDevice::none};
  expect_admissible(small_llama(), make_space(small_llama(), small_plan(12), values));
}

}  // namespace
}  // namespace shardplan
