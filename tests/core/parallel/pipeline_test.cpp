// Pipeline stages and their schedules, and what Megatron-LM keeps on a rank.
#include <gtest/gtest.h>

#include <numeric>

#include "frameworks/megatron/buffers.h"
#include "lowering/lower.h"
#include "lowering/pipeline/schedule.h"
#include "parallel/shard.h"
#include "simulator/memory.h"
#include "support/block_testing.h"
#include "support/plan_testing.h"

namespace shardplan::pipeline_test {
namespace {

constexpr std::int64_t kHidden = 1024, kHeads = 16, kSequence = 512, kBatch = 2;

Plan megatron_plan(std::int64_t ranks) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", ranks);
  plan.workload.micro_batch = kBatch;
  plan.workload.sequence_length = kSequence;
  return plan;
}

Model gpt(const Plan& plan, std::int64_t layers, bool tied = true) {
  return model_of(Json{{"model_type", "gpt2"},
                       {"n_embd", kHidden},
                       {"n_head", kHeads},
                       {"n_layer", layers},
                       {"vocab_size", 8192},
                       {"n_positions", kSequence},
                       {"tie_word_embeddings", tied}}
                      .dump(),
                  build_options(plan));
}

/// What a block's forward pass leaves: everything saved, its output in place of its input.
std::int64_t kept_by_a_block(const Plan& plan) {
  Model model = gpt(plan, 8);
  if (is_sharded(plan)) model = shard(model, plan);
  return kept_by_first_block(model, plan);
}

constexpr std::int64_t kTokens = kSequence * kBatch;
constexpr std::int64_t kScores = kHeads * kSequence * kSequence * kBatch;
constexpr std::int64_t kStatistics = 4 * 4 * kTokens;  ///< two of each norm, fp32

TEST(Activations, ALayerKeepsWhatKorthikantiCounts) {
  Plan plan = megatron_plan(1);
  plan.attention = AttentionKind::eager;
  // sbh·(34 + 5as/h), arXiv:2205.05198, equation 1.
  EXPECT_EQ(kept_by_a_block(plan), 34 * kTokens * kHidden + 5 * kScores + kStatistics);
}

TEST(Activations, TensorParallelismDividesAllButWhatTheNormsAndDropoutsSee) {
  Plan plan = megatron_plan(8);
  plan.attention = AttentionKind::eager;
  plan.parallel.tensor = 8;
  // sbh·(10 + 24/t + 5as/ht), equation 2.
  EXPECT_EQ(kept_by_a_block(plan),
            (10 + 24 / 8) * kTokens * kHidden + 5 * kScores / 8 + kStatistics);
}

TEST(Activations, SequenceParallelismDividesEverything) {
  Plan plan = megatron_plan(8);
  plan.attention = AttentionKind::eager;
  plan.parallel.tensor = 8;
  plan.parallel.sequence_parallel = true;
  // sbh/t·(34 + 5as/h), equation 4.
  EXPECT_EQ(kept_by_a_block(plan), (34 * kTokens * kHidden + 5 * kScores + kStatistics) / 8);
}

TEST(Activations, SelectiveCheckpointingDropsTheScores) {
  Plan plan = megatron_plan(1);
  plan.attention = AttentionKind::eager;
  plan.checkpointing = Checkpointing::selective;
  // 34sbh, equation 6: queries, keys and values are parts of one projection.
  EXPECT_EQ(kept_by_a_block(plan), 34 * kTokens * kHidden + kStatistics);
}

double bytes_per_parameter(const Plan& plan) {
  const Model model = gpt(plan, 8);
  return static_cast<double>(model_states(model, plan)) /
         static_cast<double>(model.parameter_count());
}

TEST(MegatronStates, EighteenBytesWithoutTheDistributedOptimizer) {
  Plan plan = megatron_plan(8);
  plan.framework.megatron.distributed_optimizer = false;
  plan.framework.megatron.overlap_param_gather = false;
  EXPECT_NEAR(bytes_per_parameter(plan), 18, 0.001);
}

TEST(MegatronStates, SixAndTwelveOverDWithIt) {
  EXPECT_NEAR(bytes_per_parameter(megatron_plan(8)), 6 + 12.0 / 8, 0.001);
  Plan bf16 = megatron_plan(8);
  bf16.framework.megatron.gradients = DType::bf16;
  EXPECT_NEAR(bytes_per_parameter(bf16), 4 + 12.0 / 8, 0.001);
}

TEST(MegatronBuffers, ParametersBeginAt64AndBucketsEndAtMultiplesOfTheRanks) {
  const Model model = equal_tensors(3, 100);
  MegatronOptions options;
  options.bucket_size = 200;
  const GradientBuffers padded = gradient_buffers(model, options, 6, 6);
  // 0..100, 128..228: past 200, closed at lcm(6, 128) = 384; 384..484, closed at 768.
  EXPECT_EQ(padded.dense.elements, 768);
  EXPECT_EQ(padded.dense.buckets, 2);
  options.distributed_optimizer = false;
  EXPECT_EQ(gradient_buffers(model, options, 6, 6).dense.elements, 300);
}

TEST(MegatronBuffers, RanksHaveEqualPartsOfEveryBucketInOtherPieces) {
  const Model model = equal_tensors(3, 100);
  MegatronOptions options;
  options.bucket_size = 200;
  const auto shards = [&](std::int64_t place) {
    return gradient_buffers(model, options, 6, 6, {place, place}).dense.shards;
  };
  // The first bucket has 64 elements a rank, of tensors at 0..100 and 128..228; the second one's
  // only tensor begins with it.
  EXPECT_EQ(shards(0), (std::vector<std::int64_t>{64, 64}));
  EXPECT_EQ(shards(1), (std::vector<std::int64_t>{36, 36}));
  EXPECT_EQ(shards(3), (std::vector<std::int64_t>{36}));
  std::int64_t sum = 0;
  for (std::int64_t place = 0; place < 6; ++place)
    for (const std::int64_t elements : shards(place)) sum += elements;
  EXPECT_EQ(sum, 300);
}

std::int64_t bytes_of(const std::vector<Event>& events, Category category) {
  std::int64_t sum = 0;
  for (const Event& e : events)
    if (e.category == category && e.kind == Event::Kind::alloc) sum += e.bytes * e.count;
  return sum;
}

TEST(MegatronFirstStep, MakesStatesAndWorkspacesThatBuildingDoesNot) {
  for (const bool divided : {true, false}) {
    Plan plan = megatron_plan(4);
    plan.framework.megatron.distributed_optimizer = divided;
    plan.framework.megatron.overlap_param_gather = divided;
    const Model model = gpt(plan, 8, false);
    const Program program = lower(model, plan, run_segments(model, plan), 0);
    for (const Category category : {Category::optimizer_states, Category::workspace}) {
      std::int64_t made = 0;
      for (const EventsOfOneStep& once : program.once) made += bytes_of(once.events, category);
      EXPECT_EQ(bytes_of(program.build, category), 0) << divided;
      EXPECT_EQ(made, bytes_of(program.resident, category)) << divided;
      EXPECT_GT(made, 0) << divided;
    }
  }
}

TEST(MegatronGradients, OfTheirBufferAreWidenedUntilTheNextStepBegins) {
  Plan plan = megatron_plan(4);
  plan.framework.megatron.gradients = DType::bf16;
  const Model model = gpt(plan, 8);
  const MemoryProfile memory = simulate_memory(lower(model, plan, run_segments(model, plan), 0));
  const std::int64_t widened = memory.of(Phase::step).end - memory.of(Phase::backward).end;
  const double owned = static_cast<double>(model.parameter_count()) / 4;
  EXPECT_NEAR(static_cast<double>(widened) / (4 * owned), 1, 0.001);
}

Parallel stages(std::int64_t pipeline, std::int64_t chunks = 1) {
  Parallel p;
  p.pipeline = pipeline;
  p.virtual_pipeline = chunks;
  if (chunks > 1) p.schedule = PipelineSchedule::interleaved;
  return p;
}

TEST(Stages, ShareBlocksAndKeepTheEndsWhereTheyBelong) {
  const Model model = gpt(megatron_plan(4), 8);
  const Stage first = stage_of(model, stages(4), 0), last = stage_of(model, stages(4), 3);
  ASSERT_EQ(first.chunks.size(), 1U);
  EXPECT_EQ(first.chunks[0].repeats.size(), 2U);  // embedding, blocks
  EXPECT_EQ(first.chunks[0].repeats[1].count, 2);
  EXPECT_EQ(last.chunks[0].repeats.back().segment, 2U);  // the head
  EXPECT_TRUE(first.chunks[0].first && last.chunks[0].last);
}

TEST(Stages, CountTheEndsAsBlocksWhereAsked) {
  Parallel p = stages(4);
  p.balance = StageBalance::blocks_and_ends;
  EXPECT_EQ(blocks_of_chunks(gpt(megatron_plan(4), 10), p),
            (std::vector<std::int64_t>{2, 3, 3, 2}));
}

TEST(Stages, BalanceParametersByWholeBlocks) {
  Parallel p = stages(2);
  p.balance = StageBalance::parameters;
  // The table is 8.4 M of 12.6 M a block: the untied head and table weigh as much, and 7 blocks
  // cannot be halved.
  const std::vector<std::int64_t> blocks = blocks_of_chunks(gpt(megatron_plan(2), 7, false), p);
  EXPECT_EQ(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}), 7);
  EXPECT_LE(std::abs(blocks[0] - blocks[1]), 1);
}

TEST(Stages, ATiedTableIsOnBothEnds) {
  const Model model = gpt(megatron_plan(4), 8);
  std::int64_t sum = 0;
  for (std::int64_t k = 0; k < 4; ++k)
    sum += parameters_of(model, stage_of(model, stages(4), k)).parameter_count();
  EXPECT_EQ(sum, model.parameter_count() + 8192 * kHidden);
}

TEST(Schedules, AStageStartsWithAsManyForwardsAsStagesFollow) {
  Plan plan = megatron_plan(4);
  plan.parallel = stages(4);
  plan.workload.gradient_accumulation = 8;
  for (std::int64_t k = 0; k < 4; ++k)
    EXPECT_EQ(stage_schedule(plan, k).warmup, std::vector<std::int64_t>{3 - k});
  plan.workload.gradient_accumulation = 2;
  EXPECT_EQ(stage_schedule(plan, 0).warmup, std::vector<std::int64_t>{2});
  EXPECT_DOUBLE_EQ(bubble_share(plan), 3.0 / 2);
}

TEST(Schedules, InterleavedChunksWarmUpInGroupsOfStages) {
  Plan plan = megatron_plan(4);
  plan.parallel = stages(4, 2);
  plan.workload.gradient_accumulation = 8;
  // Rank 0: 2·(4-1) + (2-1)·4 = 10 passes: micro-batches 0 to 3 of both chunks, 4 and 5 of the
  // first.
  EXPECT_EQ(stage_schedule(plan, 0).warmup, (std::vector<std::int64_t>{6, 4}));
  EXPECT_EQ(stage_schedule(plan, 3).warmup, (std::vector<std::int64_t>{4, 0}));
  EXPECT_DOUBLE_EQ(bubble_share(plan), 3.0 / 16);
}

struct ScheduleCase {
  FrameworkKind framework;
  Parallel parallel;
  std::int64_t micro_batches;
};

Plan plan_of_case(const ScheduleCase& c) {
  Plan plan = megatron_plan(4);
  plan.framework.kind = c.framework;
  plan.framework.deepspeed.zero.stage = 1;
  plan.parallel = c.parallel;
  plan.workload.gradient_accumulation = c.micro_batches;
  return plan;
}

/// Payload and calls of a step's "parameter all-gather".
struct Gathers {
  std::int64_t bytes = 0, calls = 0;
};
Gathers gathers_of(const Model& model, const Plan& plan, std::int64_t rank) {
  Gathers sum;
  const Program program = lower(model, plan, run_segments(model, plan), rank);
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind != Event::Kind::collective || e.what != "parameter all-gather") return;
    sum.bytes += times * e.bytes;
    sum.calls += times * e.count;
  });
  return sum;
}

/// Hooks gather a bucket when a step's first micro-batch comes to it; the others find it there.
TEST(ParameterGather, HappensOnceAStepWhateverTheSchedule) {
  for (const std::int64_t chunks : {1, 2})
    for (const std::int64_t micro_batches : {1, 4, 32}) {
      Plan plan = megatron_plan(16);
      plan.parallel = stages(4, chunks);
      plan.workload.gradient_accumulation = micro_batches;
      if (chunks > 1 && micro_batches < 4) continue;
      plan.framework.megatron.bucket_size = 1'000'000;
      const Model model = gpt(plan, 8);
      for (const std::int64_t stage : {0, 1, 3}) {
        const Stage whole = stage_of(model, plan.parallel, stage);
        std::int64_t bytes = 0, calls = 0;
        for (std::size_t c = 0; c < whole.chunks.size(); ++c) {
          Stage only = whole;
          only.chunks = {whole.chunks[c]};
          MegatronOptions options = plan.framework.megatron;
          if (stage > 0 || c > 0) options.bucket_size = 1'000'000'000;
          const GradientBuffers buffers =
              gradient_buffers(parameters_of(model, only), options, 4, 1);
          bytes += 2 * buffers.elements();
          calls += buffers.dense.buckets;
        }
        const Gathers gathers = gathers_of(model, plan, 4 * stage);
        EXPECT_EQ(gathers.bytes, bytes) << chunks << " " << micro_batches << " " << stage;
        EXPECT_EQ(gathers.calls, calls) << chunks << " " << micro_batches << " " << stage;
      }
    }
}

TEST(Schedules, EveryProgramLeavesTheLiveBytesAsItFoundThem) {
  Parallel gpipe = stages(4);
  gpipe.schedule = PipelineSchedule::gpipe;
  for (const ScheduleCase& c : {ScheduleCase{FrameworkKind::megatron, stages(4), 8},
                                {FrameworkKind::megatron, stages(4), 1},
                                {FrameworkKind::megatron, stages(4), 2},
                                {FrameworkKind::megatron, gpipe, 8},
                                {FrameworkKind::megatron, stages(4, 2), 8},
                                {FrameworkKind::deepspeed, stages(4), 8},
                                {FrameworkKind::deepspeed, stages(4), 1}}) {
    for (const Checkpointing how : {Checkpointing::none, Checkpointing::full}) {
      Plan plan = plan_of_case(c);
      plan.checkpointing = how;
      const Model model = gpt(plan, 8);
      const ModelRun run = run_segments(model, plan);
      for (const std::int64_t rank : {0, 1, 2, 3}) {
        const Program program = lower(model, plan, run, rank);
        const MemoryProfile memory = simulate_memory(program);
        EXPECT_EQ(memory.phases[2].end, total_bytes(program.resident))
            << name_of(plan.parallel.schedule) << ", stage " << rank << ", " << c.micro_batches;
        EXPECT_GT(memory.peak, memory.phases[2].end);
      }
    }
  }
}

/// Gated delta nets without adapters, and every fourth block with attention that has some: on the
/// first stage nothing is trained, and on the second nothing below its attention.
Model adapted_attention(const Plan& plan) {
  return model_of(Json{{"model_type", "qwen3_5_moe_text"},
                       {"hidden_size", 256},
                       {"num_hidden_layers", 8},
                       {"full_attention_interval", 4},
                       {"num_attention_heads", 4},
                       {"num_key_value_heads", 2},
                       {"head_dim", 64},
                       {"linear_conv_kernel_dim", 4},
                       {"linear_key_head_dim", 32},
                       {"linear_num_key_heads", 4},
                       {"linear_num_value_heads", 8},
                       {"linear_value_head_dim", 32},
                       {"moe_intermediate_size", 128},
                       {"shared_expert_intermediate_size", 128},
                       {"num_experts", 8},
                       {"num_experts_per_tok", 2},
                       {"vocab_size", 1024},
                       {"max_position_embeddings", 4096}}
                      .dump(),
                  build_options(plan));
}

TEST(Schedules, LeaveLiveBytesAsTheyFoundThemWhereTheFirstStageTrainsNothing) {
  for (const std::int64_t chunks : {1, 2}) {
    Plan plan = plan_of_case({FrameworkKind::fsdp2, stages(4, chunks), 8});
    plan.workload.lora = Lora{.rank = 8, .targets = {"q_proj", "v_proj"}};
    const Model model = adapted_attention(plan);
    const ModelRun run = run_segments(model, plan);
    for (const std::int64_t rank : {0, 1, 2, 3}) {
      const Program program = lower(model, plan, run, rank);
      EXPECT_EQ(simulate_memory(program).phases[2].end, total_bytes(program.resident))
          << chunks << " chunks, stage " << rank;
    }
  }
}

std::int64_t activations_at_peak(const Plan& plan, std::int64_t rank) {
  const Model model = gpt(plan, 8);
  const MemoryProfile memory = simulate_memory(lower(model, plan, run_segments(model, plan), rank));
  return memory.at_peak[index_of(Category::activations)];
}

TEST(Schedules, FirstStageHoldsAMicroBatchForEveryStage) {
  Plan plan = plan_of_case({FrameworkKind::megatron, stages(4), 1});
  const std::int64_t one = activations_at_peak(plan, 1);
  plan.workload.gradient_accumulation = 16;
  const std::int64_t three = activations_at_peak(plan, 1);  // stage 1 of 4
  EXPECT_GT(three, 2.7 * static_cast<double>(one));
  EXPECT_LT(three, 3.3 * static_cast<double>(one));
  plan.parallel.schedule = PipelineSchedule::gpipe;
  EXPECT_GT(activations_at_peak(plan, 1), 13 * one);  // all 16, less what only runs once
}

TEST(Schedules, TheWorstStageIsNamed) {
  Plan plan = plan_of_case({FrameworkKind::megatron, stages(4), 16});
  const Estimate e = estimate(gpt(plan, 8), plan, Calibration{});
  EXPECT_TRUE(e.ranks_differ);
  EXPECT_EQ(e.rank, 0);
  plan.parallel.stage_layers = {1, 1, 5, 1};
  EXPECT_EQ(estimate(gpt(plan, 8), plan, Calibration{}).rank, 2);
}

TEST(Traffic, ABoundaryCarriesEveryMicroBatchBothWays) {
  Plan plan = plan_of_case({FrameworkKind::megatron, stages(4), 16});
  plan.parallel.stage_layers = {1, 1, 5, 1};
  const Estimate e = estimate(gpt(plan, 8), plan, Calibration{});
  const std::int64_t hidden = 2 * kTokens * kHidden;
  for (const TrafficLine& line : e.traffic)
    if (line.what == "activations to the next stage" ||
        line.what == "gradients to the stage before") {
      EXPECT_EQ(line.bytes_per_step, 16 * hidden);
      EXPECT_EQ(line.count, 16);
    }
  EXPECT_EQ(e.traffic.size(), 2U);
}

}  // namespace
}  // namespace shardplan::pipeline_test
