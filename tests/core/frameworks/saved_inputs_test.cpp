// What checkpointed blocks keep of their inputs: Megatron's distributed saved activations and
// DeepSpeed's activation_checkpointing.
#include <gmock/gmock.h>

#include "frameworks/megatron/saved_inputs.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "parallel/shard.h"
#include "simulator/memory.h"
#include "support/block_testing.h"
#include "support/error_of.h"
#include "support/plan_testing.h"

namespace shardplan::saved_inputs_test {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

constexpr std::int64_t kHidden = 1024, kSequence = 512, kBatch = 2, kLayers = 8, kRanks = 4;
constexpr std::int64_t kInput = 2 * kSequence * kBatch * kHidden;  ///< bytes of one in bf16

Model whole_llama(const Plan& plan) {
  return model_of(Json{{"model_type", "llama"},
                       {"hidden_size", kHidden},
                       {"intermediate_size", 2816},
                       {"num_hidden_layers", kLayers},
                       {"num_attention_heads", 16},
                       {"vocab_size", 4096},
                       {"tie_word_embeddings", false}}
                      .dump(),
                  build_options(plan));
}

/// One rank's share.
Model llama(const Plan& plan) {
  const Model whole = whole_llama(plan);
  return is_sharded(plan) ? shard(whole, plan) : whole;
}

Plan checkpointed(FrameworkKind framework, std::int64_t tensor) {
  Plan plan = plan_of(framework, "bf16-master", tensor);
  plan.workload.micro_batch = kBatch;
  plan.workload.sequence_length = kSequence;
  plan.parallel.tensor = tensor;
  plan.checkpointing = Checkpointing::full;
  return plan;
}

Plan megatron(bool divided) {
  Plan plan = checkpointed(FrameworkKind::megatron, kRanks);
  plan.framework.megatron.distribute_saved_activations = divided;
  return plan;
}

Plan deepspeed(std::int64_t tensor, const DeepSpeedCheckpointing& block) {
  Plan plan = checkpointed(FrameworkKind::deepspeed, tensor);
  plan.framework.deepspeed.activation_checkpointing = block;
  plan.framework.deepspeed.activation_checkpointing.called = true;
  return plan;
}

/// What a block's forward pass leaves beside its output, which takes the place of its input.
std::int64_t kept_by_a_block(const Plan& plan) {
  return kept_by_first_block(llama(plan), plan);
}

MemoryProfile memory_of(const Plan& plan) {
  const Model model = llama(plan);
  return simulate_memory(lower(model, plan, run_segments(model, plan), 0));
}

TEST(MegatronSavedActivations, ABlockKeepsARanksPartOfItsInput) {
  EXPECT_EQ(kept_by_a_block(megatron(false)), kInput);
  EXPECT_EQ(kept_by_a_block(megatron(true)), kInput / kRanks);
}

TEST(MegatronSavedActivations, PartsOfAllBlocksAreGatheredOnceInTheBackwardPass) {
  const auto gathered = [](const Plan& plan) {
    std::int64_t bytes = 0, calls = 0;
    for (const TrafficLine& line : estimate(whole_llama(plan), plan, Calibration{}).traffic)
      if (line.what == "tensor-parallel all-gather") {
        bytes += line.bytes_per_step;
        calls += line.count;
      }
    return std::pair(bytes, calls);
  };
  EXPECT_EQ(gathered(megatron(false)).second, 0);
  const auto [bytes, calls] = gathered(megatron(true));
  EXPECT_EQ(calls, kLayers);
  EXPECT_EQ(bytes, kLayers * kInput * (kRanks - 1) / kRanks);  // what one GPU sends around a ring
}

TEST(MegatronSavedActivations, SequenceParallelismLeavesNothingToDivide) {
  Plan plan = megatron(true);
  plan.parallel.sequence_parallel = true;
  EXPECT_FALSE(distributes_saved_activations(plan));
  EXPECT_EQ(kept_by_a_block(plan), kInput / kRanks);  // its own input is a part already
}

/// With one sample the embedding's result is a view of what GPTModel.forward has a name for: what
/// the parts save at the peak of the forward pass is one input less.
TEST(MegatronSavedActivations, OneSamplesEmbeddingStaysWholeUntilTheForwardPassEnds) {
  const auto saved = [](std::int64_t samples) {
    Plan whole = megatron(false), parts = megatron(true);
    for (Plan* plan : {&whole, &parts}) {
      plan->workload.micro_batch = samples;
      plan->workload.sequence_length = kSequence * kBatch / samples;
    }
    const PhaseBytes a = memory_of(whole).phases[0], b = memory_of(parts).phases[0];
    return PhaseBytes{a.peak - b.peak, a.end - b.end};
  };
  constexpr std::int64_t kAll = kLayers * (kInput - kInput / kRanks);
  EXPECT_EQ(saved(2).end, kAll);
  EXPECT_EQ(saved(2).peak, kAll);
  EXPECT_EQ(saved(1).end, kAll);
  EXPECT_EQ(saved(1).peak, kAll - kInput);
}

/// What a block's backward pass needs at most, beside what it finds.
std::int64_t backward_peak(const Plan& plan) {
  const Model model = llama(plan);
  const ModelRun run = run_segments(model, plan);
  std::int64_t live = 0, peak = 0;
  for (const TapeEvent& e : run.segments[1].backward.backward) {
    if (e.kind == TapeEvent::Kind::alloc) live += e.bytes;
    if (e.kind == TapeEvent::Kind::free) live -= e.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(Recomputation, HoldsItsResultAndTheGradientWhereAutogradIsReentered) {
  const std::int64_t torch = backward_peak(checkpointed(FrameworkKind::deepspeed, 1));
  EXPECT_GE(backward_peak(deepspeed(1, {})), torch + kInput);
  EXPECT_LE(backward_peak(deepspeed(1, {})), torch + 2 * kInput);
}

TEST(DeepSpeedCheckpointing, ARankKeepsItsPartAndAnEmptyTensor) {
  const Plan plan = deepspeed(kRanks, {.partition_activations = true});
  EXPECT_EQ(kept_by_a_block(plan), kInput / kRanks + kAllocationUnit);
}

TEST(DeepSpeedCheckpointing, OnTheHostPartsTakePageableMemoryAndWholeInputsPinned) {
  DeepSpeedCheckpointing block{.partition_activations = true, .cpu_checkpointing = true};
  const auto host = [](const Plan& plan) {
    const Model model = llama(plan);
    return lower(model, plan, run_segments(model, plan), 0).host;
  };
  const Plan divided = deepspeed(kRanks, block);
  EXPECT_EQ(kept_by_a_block(divided), kAllocationUnit);
  EXPECT_EQ(host(divided).pageable, kLayers * kInput / kRanks);
  EXPECT_EQ(host(divided).pinned, 0);
  block.partition_activations = false;
  EXPECT_EQ(host(deepspeed(1, block)).pinned, kLayers * kInput);
}

TEST(DeepSpeedCheckpointing, ContiguousBuffersAreThereForEveryCheckpointThatIsCountedOn) {
  DeepSpeedCheckpointing block{.partition_activations = true,
                               .contiguous_memory_optimization = true,
                               .number_checkpoints = kLayers};
  const std::int64_t enough = memory_of(deepspeed(kRanks, block)).phases[0].end;
  block.number_checkpoints = kLayers + 6;
  EXPECT_EQ(memory_of(deepspeed(kRanks, block)).phases[0].end, enough + 6 * kInput / kRanks);
}

TEST(DeepSpeedCheckpointing, TheBlockReachesNothingThatTorchCheckpoints) {
  Plan plan = deepspeed(kRanks, {.partition_activations = true, .cpu_checkpointing = true});
  plan.framework.deepspeed.activation_checkpointing.called = false;
  EXPECT_EQ(kept_by_a_block(plan), kInput);
}

TEST(SavedInputs, EveryProgramLeavesTheLiveBytesAsItFoundThem) {
  std::vector<Plan> plans{megatron(false), megatron(true)};
  for (const bool parts : {false, true})
    for (const bool host : {false, true}) {
      DeepSpeedCheckpointing block{.partition_activations = parts, .cpu_checkpointing = host};
      plans.push_back(deepspeed(kRanks, block));
      block.contiguous_memory_optimization = parts;
      block.number_checkpoints = 2 * kLayers;
      plans.push_back(deepspeed(kRanks, block));
      plans.back().workload.gradient_accumulation = 3;
    }
  for (const int stage : {1, 2, 3}) {
    plans.push_back(plans.back());
    plans.back().framework.deepspeed.zero.stage = stage;
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Model model = llama(plans[i]);
    const Program program = lower(model, plans[i], run_segments(model, plans[i]), 0);
    EXPECT_EQ(simulate_memory(program).phases[2].end, total_bytes(program.resident)) << i;
  }
}

std::string error(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job = Json::parse(R"({"model": "llama-2-7b", "cluster": "8xA100-80GB",
      "checkpointing": "full", "workload": {"micro_batch": 1}})");
  job.merge_patch(Json::parse(patch));
  return error_text([&] { load_job(job, "job.json", {&hardware, ""}); });
}

TEST(SavedInputs, WhatCannotBeIsNamed) {
  const std::string option = R"("framework": {"name": "megatron", "distribute_saved_activations":
      true})";
  EXPECT_THAT(error("{" + option + R"(, "parallel": {"tensor": 8}})"),
              HasSubstr("parallel.sequence_parallel, which divides saved inputs already"));
  EXPECT_THAT(error("{" + option + "}"), HasSubstr("no tensor-parallel GPUs"));
  EXPECT_THAT(error("{" + option + R"(, "checkpointing": "selective"})"),
              HasSubstr("expected checkpointing full, or false"));
  EXPECT_EQ(error("{" + option + R"(, "parallel": {"tensor": 8, "sequence_parallel": false}})"),
            "no error");
  EXPECT_THAT(error(R"({"framework": {"name": "megatron",
                        "distributed_saved_activations": true}})"),
              HasSubstr("distribute_saved_activations"));
  const std::string block = R"("ds_config": {"zero_optimization": {"stage": 1}, "bf16": {"enabled":
      true}, "activation_checkpointing": {"partition_activations": true,
      "contiguous_memory_optimization": true, "number_checkpoints": 16}})";
  EXPECT_THAT(error(R"({"framework": {"name": "deepspeed", "checkpoint_function": "deepspeed", )" +
                    block + "}}"),
              HasSubstr("16 buffers, and the 32 blocks each want one; expected 32"));
}

TEST(SavedInputs, AJobWithABlockThatReachesNothingIsWarned) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Json job = Json::parse(R"({"model": "llama-2-7b", "cluster": "8xA100-80GB",
      "checkpointing": "full", "framework": {"name": "deepspeed", "ds_config": {
      "zero_optimization": {"stage": 2}, "bf16": {"enabled": true},
      "activation_checkpointing": {"partition_activations": true}}}})");
  const Job loaded = load_job(job, "job.json", {&hardware, ""});
  EXPECT_THAT(loaded.diagnostics,
              Contains(Field(&Diagnostic::message, HasSubstr("blocks that torch checkpoints"))));
}

}  // namespace
}  // namespace shardplan::saved_inputs_test
