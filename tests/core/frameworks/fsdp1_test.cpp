// FSDP1: flat parameters, and bytes worked out by hand from PyTorch 2.11's sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "frameworks/fsdp1/flat_units.h"
#include "frameworks/registry.h"
#include "lowering/lower.h"
#include "lowering/packed_weights.h"
#include "lowering/rank_model.h"
#include "lowering/tensors.h"
#include "model/builder.h"
#include "parallel/communicators.h"
#include "parallel/sharding.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::fsdp1_test {
namespace {

constexpr std::int64_t kLayers = 4, kHidden = 1024, kFeedForward = 2816, kVocabulary = 4096;
constexpr std::int64_t kBlock = 4 * kHidden * kHidden + 3 * kHidden * kFeedForward + 2 * kHidden;
constexpr std::int64_t kRoot = 2 * kVocabulary * kHidden + kHidden;
constexpr std::int64_t kPsi = kLayers * kBlock + kRoot;

/// Every unit's shard over eight GPUs is a multiple of 512 bytes.
Model llama(const BuildOptions& options = {}) {
  return model_of(R"({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2816,
    "vocab_size": 4096, "tie_word_embeddings": false})",
                  options);
}

Plan fsdp1(std::int64_t ranks, std::string_view precision = "bf16-autocast") {
  return plan_of(FrameworkKind::fsdp1, precision, ranks);
}

Program program_of_plan(const Model& model, const Plan& plan) {
  const RankModel share(model, plan);
  return lower(share.model(), plan, share.run(), 0);
}

MemoryProfile memory_of(const Plan& plan) {
  return simulate_memory(program_of_plan(llama(), plan));
}
std::int64_t peak_of(const Plan& plan, Phase phase) {
  return memory_of(plan).phases[static_cast<std::size_t>(phase)].peak;
}

FlatUnit unit_of(const std::vector<std::int64_t>& sizes, std::int64_t ranks, std::int64_t aligned) {
  Model model;
  std::vector<ParameterId> ids;
  for (const std::int64_t n : sizes) {
    Parameter p;
    p.shape = {n};
    p.numel = n;
    ids.push_back(static_cast<ParameterId>(model.parameters.size()));
    model.parameters.push_back(p);
  }
  return flat_unit(model, ids, {ranks, aligned});
}

TEST(FlatParameters, AreOneTensorWithoutGaps) {
  const FlatUnit unit = unit_of({10, 7, 5}, 4, 0);
  EXPECT_EQ(unit.numel, 22);
  EXPECT_EQ(unit.shard, 6);  // 24 elements over four GPUs
  EXPECT_EQ(unit.gathered(), 24);
  EXPECT_THAT(unit.padding, testing::IsEmpty());
}

TEST(FlatParameters, OfOriginalTensorsBeginAtMultiplesAndEndAtOneOfTheRanks) {
  const FlatUnit unit = unit_of({10, 7, 5}, 3, 8);
  EXPECT_THAT(unit.starts, testing::ElementsAre(0, 16, 24));
  EXPECT_EQ(unit.numel, 30);  // 29, and one for the three GPUs
  EXPECT_THAT(unit.padding, testing::ElementsAre(6, 1, 1));
  EXPECT_EQ(unit.shard, 10);
}

TEST(FlatParameters, GiveTheFirstRankTheTensorsAtTheirBegin) {
  const Model model = llama();
  const Plan plan = fsdp1(2);
  const RankModel share(model, plan);
  const FlatUnits units = flat_units(model, share.run(), {2, 8});
  const auto total = [](const OptimizerTensors& all) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < all.tensors.size(); ++i)
      sum += all.counts[i] * all.tensors[i].numel;
    return sum;
  };
  EXPECT_EQ(total(optimizer_tensors(model, units, false)), kPsi / 2);
  EXPECT_EQ(total(optimizer_tensors(model, units, true)), kPsi / 2);
  EXPECT_EQ(optimizer_tensors(model, units, false).tensors.size(), 2U);  // the root's and a block's
}

TEST(Fsdp1, KeepsSixteenBytesAParameterOverTheGpus) {
  const Estimate e = estimate(llama(), fsdp1(4), Calibration{});
  EXPECT_EQ(resident(e, Category::parameters), 4 * kPsi / 4);
  EXPECT_EQ(resident(e, Category::gradients), 4 * kPsi / 4);
  EXPECT_EQ(resident(e, Category::optimizer_states), 8 * kPsi / 4);
}

TEST(Fsdp1, GathersOneBlockAtATimeForward) {
  Plan plan = fsdp1(4);
  const std::int64_t sharded = memory_of(plan).phases[0].end;
  plan.framework.fsdp1.sharding_strategy = Fsdp1Strategy::shard_grad_op;
  // The root's stays under both.
  EXPECT_EQ(memory_of(plan).phases[0].end - sharded, 2 * kLayers * kBlock);
}

TEST(Fsdp1, PrefetchingAheadHoldsOneMoreBlockInTheBackwardPass) {
  Plan plan = fsdp1(4);
  plan.workload.sequence_length = 32;
  const auto backward = [&](Fsdp1Prefetch when) {
    plan.framework.fsdp1.backward_prefetch = when;
    return peak_of(plan, Phase::backward);
  };
  EXPECT_EQ(backward(Fsdp1Prefetch::none), backward(Fsdp1Prefetch::post));
  EXPECT_GE(backward(Fsdp1Prefetch::pre), backward(Fsdp1Prefetch::none));
}

/// The gradients of a unit's tensors beside the flat one, then that in both types and the shard.
TEST(Fsdp1, ReducesAUnitsFlatGradient) {
  Plan plan = fsdp1(4);
  plan.framework.fsdp1.reduce_dtype = DType::f32;
  const Program program = program_of_plan(llama(), plan);
  std::int64_t reductions = 0, bytes = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind != Event::Kind::collective || e.collective != Collective::reduce_scatter) return;
    reductions += times;
    bytes += times * e.bytes;
  });
  EXPECT_EQ(reductions, kLayers + 1);
  EXPECT_EQ(bytes, 4 * kPsi);
}

TEST(Fsdp1, WithoutSyncKeepsWholeGradientsInTheComputeType) {
  Plan plan = fsdp1(4);
  plan.workload.gradient_accumulation = 3;
  const auto gradients_before_the_last = [&](bool sync) {
    plan.framework.fsdp1.sync_each_batch = sync;
    const Played played = play(program_of_plan(llama(), plan));
    return played.profile.phases[0].end;
  };
  // At the end of the last forward pass: shards in fp32, or everything in bf16.
  EXPECT_EQ(gradients_before_the_last(false) - gradients_before_the_last(true),
            2 * kPsi - 4 * kPsi / 4);
}

TEST(Fsdp1, OneGpuKeepsEverythingAndCastsForEachPass) {
  const Estimate e = estimate(llama(), fsdp1(1), Calibration{});
  EXPECT_EQ(resident(e, Category::parameters), 4 * kPsi);
  EXPECT_EQ(resident(e, Category::gradients), 4 * kPsi);
  Plan plan = fsdp1(1);
  const std::int64_t cast = peak_of(plan, Phase::forward);
  plan.precision = precision_preset("bf16-pure");
  EXPECT_GT(cast - peak_of(plan, Phase::forward), 0);
  EXPECT_THAT(estimate(llama(), plan, Calibration{}).traffic, testing::IsEmpty());
}

TEST(Fsdp1, OffloadKeepsShardsPinnedAndNoStatesOnTheGpu) {
  Plan plan = fsdp1(4);
  plan.framework.fsdp1.cpu_offload = true;
  const Estimate e = estimate(llama(), plan, Calibration{});
  EXPECT_EQ(resident(e, Category::parameters), 0);
  EXPECT_EQ(resident(e, Category::optimizer_states), 0);
  EXPECT_EQ(e.host_per_node.pageable, 4 * (8 * kPsi / 4));
  EXPECT_GE(e.host_per_node.pinned, 4 * (2 * 4 * kPsi / 4));
}

TEST(Fsdp1, HybridShardingDividesANodesCopy) {
  Plan plan = fsdp1(16);
  plan.framework.fsdp1.sharding_strategy = Fsdp1Strategy::hybrid_shard;
  EXPECT_EQ(plan.shard_ranks(), 8);
  EXPECT_EQ(plan.copies(), 2);
  EXPECT_EQ(resident(estimate(llama(), plan, Calibration{}), Category::parameters), 4 * kPsi / 8);
  EXPECT_EQ(communicators(plan, 0).size(), 3U);
}

TEST(Fsdp1, RefusesWhatPyTorchRefuses) {
  const auto key_of = [](const Plan& plan) {
    const auto problem = sharding_problem(llama(), plan);
    return problem ? problem->key : "";
  };
  Plan plan = fsdp1(4);
  EXPECT_EQ(key_of(plan), "");
  plan.workload.lora = Lora{8, {"q_proj"}};
  EXPECT_EQ(key_of(plan), "");
  plan.workload.lora->base = Quantization::nf4;
  plan.workload.lora->prepare_kbit = false;
  EXPECT_EQ(key_of(plan), "precision");  // norms in fp32 beside packed weights
  plan.precision = precision_preset("bf16-pure");
  EXPECT_EQ(key_of(plan), "");
  plan.workload.lora->prepare_kbit = true;
  EXPECT_EQ(key_of(plan), "workload.lora.prepare_kbit");
  plan = fsdp1(4);
  plan.framework.fsdp1.cpu_offload = true;
  plan.workload.gradient_accumulation = 2;
  EXPECT_EQ(key_of(plan), "framework.sync_each_batch");
  plan.framework.fsdp1.sync_each_batch = false;
  EXPECT_EQ(key_of(plan), "");
  plan.framework.fsdp1.hybrid_shard_size = 2;
  EXPECT_EQ(key_of(plan), "framework.hybrid_shard_size");
}

Plan lora(std::int64_t ranks, Quantization base) {
  Plan plan = fsdp1(ranks, "bf16-pure");
  plan.workload.lora = Lora{8, {"q_proj"}};
  plan.workload.lora->base = base;
  plan.workload.lora->prepare_kbit = false;
  return plan;
}

TEST(Fsdp1, WrapsAdaptersOnTheirOwn) {
  const Plan plan = lora(4, Quantization::none);
  const Model model = llama(build_options(plan));
  const MemoryProfile memory = simulate_memory(program_of_plan(model, plan));
  // The frozen model in bf16; two matrices of 8 x 1024 a block in fp32; Adam's two states of them.
  constexpr std::int64_t kAdapters = kLayers * 2 * 8 * kHidden;
  EXPECT_EQ(memory.at_start[static_cast<std::size_t>(Category::parameters)],
            kPsi / 4 * 2 + kAdapters / 4 * 4);
  EXPECT_EQ(memory.at_start[static_cast<std::size_t>(Category::optimizer_states)],
            2 * kAdapters / 4 * 4);  // the count of steps is on the host
}

TEST(Fsdp1, ShardsPackedWeightsAndKeepsTheirScalesWhole) {
  const Plan plan = lora(4, Quantization::nf4);
  const Model model = llama(build_options(plan));
  const MemoryProfile memory = simulate_memory(program_of_plan(model, plan));
  std::vector<Event> scales;
  PackedWeights(model, DType::bf16).append_whole_parts(scales);
  EXPECT_GT(total_bytes(scales), 0);
  constexpr std::int64_t kMatrices = kLayers * (kBlock - 2 * kHidden);  // 4 bits each
  constexpr std::int64_t kAdapters = kLayers * 2 * 8 * kHidden;
  EXPECT_EQ(
      memory.at_start[static_cast<std::size_t>(Category::parameters)],
      kMatrices / 2 / 4 + (kPsi - kMatrices) / 4 * 2 + kAdapters / 4 * 4 + total_bytes(scales));
}

TEST(Fsdp1, StepsOfAdaptersEndAsTheyBegan) {
  for (const Quantization base : {Quantization::none, Quantization::nf4})
    for (const bool originals : {true, false})
      for (const std::int64_t accumulation : {1, 3})
        for (const std::int64_t ranks : {1, 3, 16}) {
          Plan plan = lora(ranks, base);
          plan.framework.fsdp1.use_orig_params = originals;
          plan.framework.fsdp1.sync_each_batch = originals;
          plan.workload.gradient_accumulation = accumulation;
          const Played played = play(program_of_plan(llama(build_options(plan)), plan));
          for (std::size_t i = 0; i < kCategoryCount; ++i) {
            EXPECT_EQ(played.at_end[i], played.profile.at_start[i]) << name_of(Category(i));
            EXPECT_GE(played.least[i], 0) << name_of(Category(i));
          }
        }
}

/// Options that change what is allocated.
std::vector<Plan> variants() {
  std::vector<Plan> all;
  for (const auto* precision : {"bf16-autocast", "fp32", "bf16-pure"})
    for (const auto strategy : {Fsdp1Strategy::full_shard, Fsdp1Strategy::shard_grad_op,
                                Fsdp1Strategy::hybrid_shard, Fsdp1Strategy::no_shard})
      for (const bool sync : {true, false})
        for (const std::int64_t accumulation : {1, 3})
          for (const std::int64_t ranks : {1, 3, 16}) {
            Plan plan = fsdp1(ranks, precision);
            plan.gradient_clipping = 1.0;
            plan.framework.fsdp1.sharding_strategy = strategy;
            plan.framework.fsdp1.sync_each_batch = sync;
            plan.framework.fsdp1.use_orig_params = sync;
            plan.workload.gradient_accumulation = accumulation;
            all.push_back(plan);
            plan.framework.fsdp1.reduce_dtype = DType::f32;
            plan.framework.fsdp1.backward_prefetch =
                sync ? Fsdp1Prefetch::post : Fsdp1Prefetch::none;
            plan.framework.fsdp1.forward_prefetch = true;
            plan.framework.fsdp1.keep_low_precision_grads = true;
            plan.framework.fsdp1.limit_all_gathers = false;
            all.push_back(plan);
          }
  Plan offload = fsdp1(4);
  offload.framework.fsdp1.cpu_offload = true;
  all.push_back(offload);
  offload.framework.fsdp1.sync_each_batch = false;
  offload.workload.gradient_accumulation = 3;
  all.push_back(offload);
  return all;
}

TEST(Fsdp1, ProgramsEndAStepAsTheyBeganIt) {
  std::size_t number = 0;
  for (const Plan& plan : variants()) {
    const Played played = play(program_of_plan(llama(), plan));
    for (std::size_t i = 0; i < kCategoryCount; ++i) {
      const Category category = static_cast<Category>(i);
      EXPECT_EQ(played.at_end[i], played.profile.at_start[i])
          << "variant " << number << ": " << name_of(category);
      EXPECT_GE(played.least[i], 0) << "variant " << number << ": " << name_of(category);
    }
    ++number;
  }
}

TEST(Frameworks, AreInTheRegistryInTheirOrder) {
  for (std::size_t i = 0; i < kFrameworkCount; ++i) {
    const auto kind = static_cast<FrameworkKind>(i);
    EXPECT_EQ(traits_of(kind).kind, kind);
    EXPECT_EQ(framework_named(name_of(kind)), kind);
  }
}

}  // namespace
}  // namespace shardplan::fsdp1_test
