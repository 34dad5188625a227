// ZeRO++, MiCS and hybrid sharding: bytes worked out by hand from the frameworks' sources.
#include "parallel/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frameworks/deepspeed/gather.h"
#include "frameworks/deepspeed/quantize.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "parallel/communicators.h"
#include "parallel/groups.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::sharding_test {
namespace {

constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kHidden = 1024;
constexpr std::int64_t kFeedForward = 2816;
constexpr std::int64_t kVocabulary = 4096;

/// Every tensor divides by 16 GPUs and its shards by 512 bytes.
Model llama() {
  return model_of(R"({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2816,
    "vocab_size": 4096, "tie_word_embeddings": false})");
}

constexpr std::int64_t kLinears =
    kLayers * (4 * kHidden * kHidden + 3 * kHidden * kFeedForward) + 2 * kVocabulary * kHidden;
constexpr std::int64_t kNorms = (2 * kLayers + 1) * kHidden;

/// Two nodes of eight GPUs; everything is released after its use.
Plan stage3() {
  Plan plan = zero_plan(3, "bf16-master", 16);
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.reduce_bucket_size = 1'000'000;
  zero.prefetch_bucket_size = 0;
  zero.max_reuse_distance = 0;
  zero.param_persistence_threshold = kHidden;  // the norms
  return plan;
}

Program program_of_plan(const Model& model, const Plan& plan) {
  const RankModel share(model, plan);
  return lower(share.model(), plan, share.run(), 0);
}

const TrafficLine* line_of(const Estimate& e, std::string_view what) {
  const auto line = std::find_if(e.traffic.begin(), e.traffic.end(),
                                 [&](const TrafficLine& t) { return t.what == what; });
  return line == e.traffic.end() ? nullptr : &*line;
}
std::int64_t payload(const Estimate& e, std::string_view what) {
  const TrafficLine* line = line_of(e, what);
  return line == nullptr ? 0 : line->payload_bytes;
}

void expect_balanced(const Program& program) {
  const Played played = play(program);
  EXPECT_EQ(played.at_end, played.profile.at_start);
  for (const std::int64_t least : played.least) EXPECT_GE(least, 0);
}

std::int64_t phase_end(const Estimate& e, Phase phase) {
  return e.phases[static_cast<std::size_t>(phase)].end;
}

TEST(Stage3, GathersTheHeadOnceWhereItAloneStaysOverTheTurn) {
  const Model model = llama();
  Plan plan = stage3();
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.max_reuse_distance = 2'000;
  zero.prefetch_bucket_size = 1'000'000;
  zero.max_live_parameters = 1'000'000;  // fewer than the head has
  expect_balanced(program_of_plan(model, plan));
  const Estimate e = estimate(model, plan, Calibration{});
  zero.max_reuse_distance = 0;
  EXPECT_EQ(phase_end(e, Phase::step),
            phase_end(estimate(model, plan, Calibration{}), Phase::step));
}

// hpZ (partition_parameters.py _partition_param_sec): b · aligned / Z bytes of each tensor.

TEST(Hpz, KeepsASecondCopyDividedByItsGroupFromForwardToStep) {
  const Model model = llama();
  Plan plan = stage3();
  const Estimate without = estimate(model, plan, Calibration{});
  plan.framework.deepspeed.zero.hpz_partition_size = 8;
  const Estimate with = estimate(model, plan, Calibration{});
  // A norm's 256 bytes take a block of 512.
  const std::int64_t linears = 2 * kLinears / 8, norms = (2 * kLayers + 1) * 512;
  EXPECT_EQ(with.model_bytes - without.model_bytes, linears + norms);
  EXPECT_EQ(phase_end(with, Phase::forward) - phase_end(without, Phase::forward), linears);
  EXPECT_EQ(phase_end(with, Phase::backward) - phase_end(without, Phase::backward), linears);
  // The norms are persistent: releasing them is what the step begins with.
  const auto step = static_cast<std::size_t>(Phase::step);
  EXPECT_EQ(with.phases[step].peak - without.phases[step].peak, linears + norms);
  EXPECT_EQ(phase_end(with, Phase::step), phase_end(without, Phase::step));
  expect_balanced(program_of_plan(model, plan));
}

TEST(Hpz, WhatTheReuseWindowKeepsIsDividedInTheBackwardPass) {
  const Model model = llama();
  Plan plan = stage3();
  // Twice the head and one block: they stay gathered over the turn.
  plan.framework.deepspeed.zero.max_reuse_distance =
      2 * (kVocabulary * kHidden + (kLinears - 2 * kVocabulary * kHidden) / kLayers);
  const Estimate without = estimate(model, plan, Calibration{});
  plan.framework.deepspeed.zero.hpz_partition_size = 8;
  const Estimate with = estimate(model, plan, Calibration{});
  EXPECT_LT(phase_end(with, Phase::forward) - phase_end(without, Phase::forward), 2 * kLinears / 8);
  EXPECT_EQ(phase_end(with, Phase::backward) - phase_end(without, Phase::backward),
            2 * kLinears / 8);
  expect_balanced(program_of_plan(model, plan));
}

TEST(Hpz, OnlyTheFirstForwardOfAStepGathersOverTheWorld) {
  const Model model = llama();
  Plan plan = stage3();
  plan.workload.gradient_accumulation = 3;
  plan.framework.deepspeed.zero.hpz_partition_size = 8;
  const Estimate e = estimate(model, plan, Calibration{});
  EXPECT_EQ(payload(e, "parameter all-gather"), 2 * kLinears);
  EXPECT_EQ(payload(e, "secondary parameter all-gather"),
            (2 + 3) * 2 * kLinears);  // two forward passes and three backward
  EXPECT_EQ(line_of(e, "secondary parameter all-gather")->bytes_per_step,
            payload(e, "secondary parameter all-gather") / 8 * 7);
  expect_balanced(program_of_plan(model, plan));
}

TEST(Hpz, FollowsOffloadedParametersToTheHost) {
  const Model model = llama();
  Plan plan = stage3();
  plan.framework.deepspeed.zero.offload_optimizer.device = OffloadDevice::cpu;
  plan.framework.deepspeed.zero.offload_param.device = OffloadDevice::cpu;
  const Estimate without = estimate(model, plan, Calibration{});
  plan.framework.deepspeed.zero.hpz_partition_size = 8;
  const Estimate with = estimate(model, plan, Calibration{});
  EXPECT_EQ(with.allocated.point, without.allocated.point);
  // Each tensor is pinned alone, in a block of a power of two: 1024 × 2816 / 8 × 2 bytes take 1
  // MiB.
  const std::int64_t block = 4 * (kHidden * kHidden / 4) + 3 * (std::int64_t{1} << 20);
  const std::int64_t shards =
      kLayers * block + 2 * (kVocabulary * kHidden / 4) + (2 * kLayers + 1) * (kHidden / 4);
  EXPECT_EQ(with.host_per_node.pinned - without.host_per_node.pinned, 8 * shards);
}

// qwZ (partition_parameters.py CUDAQuantizer): one byte an element and four a block.

TEST(QuantizedWeights, BlocksAreTheFewestWithAtMost8000ElementsThatDivide) {
  // 2^20 / 8000 = 131.07…: 132 at least, and blocks of a multiple of 8 elements.
  EXPECT_EQ(quantization_blocks(std::int64_t{1} << 20), 256);
  EXPECT_EQ(quantization_blocks(8000), 1);
  EXPECT_EQ(quantization_blocks(8008), 7);  // 8 · 7 · 11 · 13: by 7, since 2 … 6 leave no multiple
  EXPECT_EQ(quantization_blocks(64), 1);
  EXPECT_EQ(quantized_bytes(std::int64_t{1} << 20), (std::int64_t{1} << 20) + 4 * 256);
}

struct Gathered {
  Model model = llama();
  Plan plan = stage3();
  GatherBytes of(std::vector<ParameterId> ids) const {
    const RankModel share(model, plan);
    const Engine engine = engine_of(model, plan);
    return GatherPlan(model, plan, share.run(), engine).bytes_of({.ids = std::move(ids)});
  }
  /// What stays as long as the gathered parameters are used, their own tensors included.
  std::int64_t held(const std::vector<ParameterId>& ids) const {
    const RankModel share(model, plan);
    const Engine engine = engine_of(model, plan);
    const GatherPlan gathers(model, plan, share.run(), engine);
    const GatherBytes bytes = gathers.bytes_of({.ids = ids});
    std::int64_t sum = bytes.received + bytes.widened;
    for (const ParameterId id : ids) sum += gathers.gathered_bytes(id);
    return sum;
  }
  ParameterId named(std::string_view name) const {
    for (std::size_t i = 0; i < model.parameters.size(); ++i)
      if (model.parameters[i].name.find(name) != std::string::npos)
        return static_cast<ParameterId>(i);
    return kNone;
  }
};

TEST(QuantizedWeights, OneTensorIsWidenedFromItsInt8Buffer) {
  Gathered g;
  g.plan.framework.deepspeed.zero.quantized_weights = true;
  const std::int64_t n = kHidden * kHidden, shard = n / 16;  // 65536: 16 blocks of 4096
  const GatherBytes bytes = g.of({g.named("q_proj")});
  EXPECT_EQ(bytes.payload, 16 * (shard + 4 * 16));
  EXPECT_EQ(bytes.early, bytes.payload);  // until it is widened
  EXPECT_EQ(bytes.copies, 2 * shard);     // bf16 is cast to the quantizer's fp16
  EXPECT_EQ(bytes.own, shard + 4 * 16);
  EXPECT_EQ(bytes.cast, 2 * n);  // fp16, until it is bf16
  EXPECT_EQ(g.held({g.named("q_proj")}), 2 * n);
  g.plan.precision = precision_preset("fp16-master");
  EXPECT_EQ(g.of({g.named("q_proj")}).copies, 0);
  EXPECT_EQ(g.of({g.named("q_proj")}).cast, 0);
}

TEST(QuantizedWeights, SeveralTensorsKeepTheInt8BufferAndItsFp16Copy) {
  Gathered g;
  g.plan.framework.deepspeed.zero.quantized_weights = true;
  const std::int64_t n = kHidden * kHidden, shards = 2 * n / 16;  // 131072: 32 blocks of 4096
  const GatherBytes bytes = g.of({g.named("q_proj"), g.named("k_proj")});
  EXPECT_EQ(bytes.payload, 16 * (shards + 4 * 32));
  EXPECT_EQ(bytes.copies, 2 * shards + 2 * shards);  // put together, and that in fp16
  EXPECT_EQ(g.held({g.named("q_proj"), g.named("k_proj")}),
            2 * (2 * n) + bytes.payload + 2 * (2 * n));
}

TEST(QuantizedWeights, HalveWhatIsGatheredButForTheScales) {
  const Model model = llama();
  Plan plan = stage3();
  const std::int64_t whole = payload(estimate(model, plan, Calibration{}), "parameter all-gather");
  plan.framework.deepspeed.zero.quantized_weights = true;
  const std::int64_t quantized =
      payload(estimate(model, plan, Calibration{}), "parameter all-gather");
  EXPECT_GT(quantized, whole / 2);
  EXPECT_LT(static_cast<double>(quantized), 0.501 * static_cast<double>(whole));
  expect_balanced(program_of_plan(model, plan));
}

TEST(QuantizedWeights, RefuseShardsThatTheQuantizerDoesNotTake) {
  const Model model = llama();
  Plan plan = stage3();
  plan.framework.deepspeed.zero.quantized_weights = true;
  EXPECT_FALSE(sharding_problem(model, plan));
  plan.cluster = cluster_of(12);
  const auto problem = sharding_problem(model, plan);
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->message.text, ::testing::HasSubstr("over 12 GPUs the shards of"));
  EXPECT_THAT(problem->expected, ::testing::HasSubstr("8 GPUs"));
}

// qgZ (coalesced_collectives.py all_to_all_quant_reduce).

TEST(QuantizedGradients, GoInTwoHopsOfFourBits) {
  ModelBuilder m({});
  m.tensor("weight", {4096, 2048}, ParameterKind::linear);
  m.tensor("bias", {4096}, ParameterKind::other);
  m.tensor("odd", {3, 100}, ParameterKind::other);
  const QuantizedReduction r = quantized_reduction(m.build(), 16, 8, false);
  const std::int64_t n = 4096 * 2048;
  EXPECT_EQ(r.tensors, 1);
  EXPECT_EQ(r.in_node, n / 2 + 4 * 4096);        // a block a row of the longer side
  EXPECT_EQ(r.between_nodes, n / 16 + 4 * 512);  // an eighth of both
  EXPECT_EQ(r.other_tensors, 2);                 // a vector, and one that 32 does not divide
  EXPECT_EQ(r.other_elements, 4096 + 304);
  // What either hop sends and receives, the second's sum in fp16, and the next tensor's first.
  EXPECT_EQ(r.buffers, 3 * r.in_node + 2 * r.between_nodes + 2 * n / 8);
  EXPECT_EQ(r.feedback, 0);
}

TEST(QuantizedGradients, LoCoKeepsItsErrorsInInt8) {
  ModelBuilder m({});
  m.tensor("weight", {4096, 2048}, ParameterKind::linear);
  const QuantizedReduction r = quantized_reduction(m.build(), 16, 8, true);
  const std::int64_t n = 4096 * 2048;
  EXPECT_EQ(r.feedback, (n + 4 * 4096) + (n / 8 + 4 * 512));
}

TEST(QuantizedGradients, StayWholeOnOneNode) {
  const Model model = llama();
  Plan plan = stage3();
  plan.framework.deepspeed.zero.quantized_gradients = true;
  const Estimate two = estimate(model, plan, Calibration{});
  EXPECT_EQ(payload(two, "4-bit gradient all-to-all between nodes") / 16 * 16,
            payload(two, "4-bit gradient all-to-all between nodes"));
  EXPECT_GT(payload(two, "4-bit gradient all-to-all in nodes"), kLinears / 2);
  EXPECT_EQ(payload(two, "gradient reduce-scatter"), 2 * kNorms);
  expect_balanced(program_of_plan(model, plan));
  plan.cluster = cluster_of(8);
  const Estimate one = estimate(model, plan, Calibration{});
  EXPECT_EQ(payload(one, "gradient reduce-scatter"), 2 * (kLinears + kNorms));
  EXPECT_EQ(payload(one, "4-bit gradient all-to-all in nodes"), 0);
}

// The paper's table (arXiv:2306.10209): of 3M that ZeRO-3 moves between nodes, ZeRO++ moves 0.75M.
TEST(ZeroPlusPlus, MovesAQuarterBetweenNodes) {
  const Model model = llama();
  Plan plan = stage3();
  plan.cluster = cluster_of(512);  // on few nodes an all-to-all leaves more at home
  const auto between = [&] {
    std::int64_t bytes = 0;
    for (const TrafficLine& line : estimate(model, plan, Calibration{}).traffic)
      bytes += line.bytes_between_nodes;
    return static_cast<double>(bytes);
  };
  const double before = between();
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.hpz_partition_size = 8;
  zero.quantized_weights = true;
  zero.quantized_gradients = true;
  EXPECT_NEAR(before / between(), 4.0, 0.1);
}

// MiCS (zero/mics.py).

TEST(Mics, DividesStatesOverItsGroupAndSumsGradientsOverCopiesOnceAStep) {
  const Model model = llama();
  Plan plan = stage3();
  plan.framework.deepspeed.zero.mics_shard_size = 4;
  plan.workload.gradient_accumulation = 3;
  const Estimate e = estimate(model, plan, Calibration{});
  const std::int64_t psi = kLinears + kNorms;
  EXPECT_EQ(model_states(e), 16 * psi / 4);
  EXPECT_EQ(payload(e, "gradient reduce-scatter"), 3 * 2 * psi);
  EXPECT_EQ(line_of(e, "gradient reduce-scatter")->bytes_per_step, 3 * 2 * psi / 4 * 3);
  EXPECT_EQ(payload(e, "gradient all-reduce over copies"), 2 * psi / 4);
  EXPECT_EQ(line_of(e, "gradient all-reduce over copies")->bytes_per_step,
            2 * (2 * psi / 4) / 4 * 3);
  const auto groups = group_shapes(plan);
  EXPECT_EQ(groups[static_cast<std::size_t>(Group::shard)].nodes, 1);
  EXPECT_EQ(groups[static_cast<std::size_t>(Group::replica)].ranks, 4);
  EXPECT_EQ(groups[static_cast<std::size_t>(Group::replica)].nodes, 2);
  EXPECT_EQ(communicators(plan, 0).size(), 4);  // the world, its clone, a shard and a replica group
  expect_balanced(program_of_plan(model, plan));
}

TEST(Mics, GathersEachTensorIntoItsOwnPlace) {
  Gathered g;
  const std::vector<ParameterId> two{g.named("q_proj"), g.named("k_proj")};
  const std::int64_t bytes = 2 * 2 * kHidden * kHidden;
  EXPECT_EQ(g.held(two), 2 * bytes);
  g.plan.framework.deepspeed.zero.mics_shard_size = 8;
  EXPECT_EQ(g.held(two), bytes);
}

TEST(Mics, GathersInTwoHopsWhereAskedTo) {
  const Model model = llama();
  Plan plan = stage3();
  plan.cluster = cluster_of(32);
  plan.framework.deepspeed.zero.mics_shard_size = 16;
  const std::int64_t whole = payload(estimate(model, plan, Calibration{}), "parameter all-gather");
  plan.framework.deepspeed.zero.mics_hierarchical_gather = true;
  const Estimate e = estimate(model, plan, Calibration{});
  EXPECT_EQ(payload(e, "parameter all-gather in nodes"), whole);
  EXPECT_EQ(payload(e, "parameter all-gather between nodes"), whole / 8);
  EXPECT_EQ(communicators(plan, 0).size(), 6);
  expect_balanced(program_of_plan(model, plan));
}

// FSDP2 over a mesh of (replicate, shard) (_fsdp_collectives.py foreach_reduce).

Plan hybrid() {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 16);
  plan.framework.fsdp2.hybrid_shard_size = 8;
  return plan;
}

TEST(HybridSharding, DividesStatesOverTheShardGroup) {
  const Model model = llama();
  const std::int64_t psi = kLinears + kNorms;
  EXPECT_EQ(resident(estimate(model, hybrid(), Calibration{}), Category::parameters), 4 * psi / 8);
  EXPECT_EQ(communicators(hybrid(), 0).size(), 3);
  EXPECT_EQ(communicators(plan_of(FrameworkKind::fsdp2, "bf16-autocast", 16), 0).size(), 1);
}

TEST(HybridSharding, SumsReducedGradientsOverCopies) {
  const Model model = llama();
  const std::int64_t psi = kLinears + kNorms;
  const Estimate e = estimate(model, hybrid(), Calibration{});
  EXPECT_EQ(payload(e, "gradient reduce-scatter"), 2 * psi);
  EXPECT_EQ(payload(e, "gradient all-reduce over copies"), 2 * psi / 8);
  EXPECT_EQ(line_of(e, "gradient all-reduce over copies")->bytes_per_step, 2 * psi / 8);
  expect_balanced(program_of_plan(model, hybrid()));
}

TEST(HybridSharding, KeepsEveryGroupsSumUntilTheBackwardPassEnds) {
  const Model model = llama();
  const auto step_of = [&](const Plan& plan) {
    const Played played = play(program_of_plan(model, plan));
    return played.profile;
  };
  Plan plan = hybrid();
  const MemoryProfile kept = step_of(plan);
  plan.framework.fsdp2.reduce_dtype = DType::f32;  // the gradients' own type: nothing to keep
  const MemoryProfile own = step_of(plan);
  EXPECT_EQ(kept.phases[1].end, own.phases[1].end);
  std::int64_t released = 0;
  for (const Event& event : program_of_plan(model, hybrid()).events)
    if (event.kind == Event::Kind::free && event.category == Category::communication_buffers)
      released = std::max(released, event.bytes);
  EXPECT_GE(released, 2 * (kLinears + kNorms) / 8);
}

TEST(HybridSharding, NamesTheNearestSizeThatDivides) {
  Plan plan = hybrid();
  EXPECT_FALSE(sharding_problem(llama(), plan));
  plan.framework.fsdp2.hybrid_shard_size = 6;
  const auto problem = sharding_problem(llama(), plan);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->key, "framework.hybrid_shard_size");
  EXPECT_EQ(problem->message.text, "6 does not divide the 16 data-parallel GPUs");
  EXPECT_EQ(problem->expected, "8");
  EXPECT_EQ(nearest_divisor(24, 5), 6);
  EXPECT_EQ(nearest_divisor(7, 5), 7);
}

// DeepSpeed's AutoEP at ZeRO-2 (module_inject/auto_ep.py, zero/stage_1_and_2.py): on two GPUs that
// share eight experts each has four of its own, and their states whole. The figures are those of
// data/measurements/training/deepspeed/h200-2x-deepspeed-autoep-z2-mixtral-small-bf16-b2-s2048.json.
Model mixtral() {
  return model_of(R"({"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 3584,
    "num_hidden_layers": 12, "num_attention_heads": 16, "num_key_value_heads": 4,
    "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000, "sliding_window": null,
    "tie_word_embeddings": false})");
}

Plan autoep(std::int64_t ranks) {
  Plan plan = zero_plan(2, "bf16-master", ranks);
  plan.parallel.expert = 2;
  return plan;
}

TEST(AutoEp, DividesExpertsOverThoseThatHaveThemAndTheRestOverAll) {
  const Estimate e = estimate(mixtral(), autoep(2), Calibration{});
  constexpr std::int64_t kExperts = 12 * 8 * 3 * 1024 * 3584;
  EXPECT_EQ(resident(e, Category::parameters), 1'251'198'976 + 2 * kExperts);
  EXPECT_EQ(resident(e, Category::master_parameters), 2'308'163'584);
  EXPECT_EQ(resident(e, Category::optimizer_states), 4'616'327'168);
  EXPECT_EQ(resident(e, Category::gradients), 1'156'177'920);  // copy_grads_in_partition
  expect_balanced(program_of_plan(mixtral(), autoep(2)));
}

TEST(AutoEp, TakesAStepGroupByGroupOfAtMost178956971Elements) {
  const Estimate e = estimate(mixtral(), autoep(2), Calibration{});
  // Four layers' experts of a rank: flat in bf16, then in fp32, beside all gradients.
  constexpr std::int64_t kGroup = 4 * 4 * 3 * 1024 * 3584;
  const auto step = e.phases[static_cast<std::size_t>(Phase::step)];
  EXPECT_EQ(step.peak - step.end, 1'156'177'920 + 6 * kGroup);
}

TEST(AutoEp, SumsExpertsGradientsAmongThoseThatHaveThem) {
  const Estimate two = estimate(mixtral(), autoep(2), Calibration{});
  const Estimate eight = estimate(mixtral(), autoep(8), Calibration{});
  constexpr std::int64_t kLocal = 12 * 4 * 3 * 1024 * 3584;
  const std::int64_t dense = payload(two, "gradient all-reduce");
  EXPECT_EQ(payload(eight, "gradient all-reduce"), dense + 2 * kLocal);
  EXPECT_EQ(line_of(eight, "gradient all-reduce")->bytes_per_step,
            2 * (dense - dense / 8) + 2 * (2 * kLocal - 2 * kLocal / 4));
  EXPECT_EQ(resident(eight, Category::master_parameters), 4 * (dense / 2 / 8 + kLocal / 4));
}

TEST(AutoEp, IsEstimatedAtEveryStageWithoutAnotherDegree) {
  Plan plan = autoep(4);
  for (const int stage : {0, 1, 2, 3}) {
    plan.framework.deepspeed.zero.stage = stage;
    EXPECT_FALSE(division_problem(mixtral(), plan)) << stage;
  }
  plan.parallel.sequence = 2;
  const auto problem = division_problem(mixtral(), plan);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->message.text, "DeepSpeed's experts cannot be estimated yet beside another degree");
}

/// ms-swift's and LLaMA-Factory's own, over the ranks that DDP or FSDP2 has.
TEST(Ulysses, UnderDdpAndFsdp2SendsWhatItDoesUnderDeepSpeed) {
  const Model model = llama();
  const auto sent = [&](FrameworkKind framework) {
    Plan plan = plan_of(framework, "bf16-autocast", 8);
    plan.framework.deepspeed.zero.stage = 0;
    plan.parallel.sequence = 4;
    EXPECT_FALSE(division_problem(model, plan));
    return estimate(model, plan, Calibration{});
  };
  const std::string exchange = "sequence-parallel all-to-all";
  const Estimate ddp = sent(FrameworkKind::ddp);
  ASSERT_NE(line_of(ddp, exchange), nullptr);
  EXPECT_EQ(line_of(ddp, exchange)->bytes_per_step,
            line_of(sent(FrameworkKind::deepspeed), exchange)->bytes_per_step);
  EXPECT_NE(line_of(sent(FrameworkKind::fsdp2), exchange), nullptr);
  EXPECT_EQ(payload(ddp, "gradient all-reduce"), 4 * model.parameter_count());
}

/// Without a policy fully_shard has one group: all of it is there at once, in both passes.
TEST(Fsdp2Units, OfTheWholeNetworkAreGatheredAtOnce) {
  const Model model = llama();
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 8);
  const Estimate blocks = estimate(model, plan, Calibration{});
  plan.framework.fsdp2.units = Fsdp2Wrap::whole;
  const Estimate whole = estimate(model, plan, Calibration{});
  const std::int64_t all = 2 * model.parameter_count();
  EXPECT_GT(whole.allocated.point, blocks.allocated.point + all / 2);
  EXPECT_EQ(line_of(whole, "parameter all-gather")->count, 2);
}

}  // namespace
}  // namespace shardplan::sharding_test
