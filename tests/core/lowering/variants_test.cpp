// Plans that change what a block keeps or how weights are stored: selective checkpointing, the
// fused linear loss, four-bit bases.
#include <gtest/gtest.h>

#include "estimate/estimate.h"
#include "load/model.h"
#include "load/precision.h"
#include "lowering/lower.h"
#include "lowering/stored_weights.h"
#include "lowering/tensors.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

Plan single_gpu() {
  Plan plan;
  plan.framework.kind = FrameworkKind::single;
  plan.precision = precision_preset("bf16-pure");
  plan.cluster.gpu.compute_capability = "9.0";
  plan.cluster.gpu.abilities.blas_workspace_bytes = 32 * kMiB;  // as Hopper has
  plan.cluster.gpu.abilities.transformer_engine_workspace_bytes = 32 * kMiB + 1024;
  plan.workload.micro_batch = 2;
  return plan;
}

MemoryProfile profile(const Plan& plan) {
  const BuildOptions options{
      .attention = plan.attention, .lora = plan.workload.lora, .loss = plan.loss};
  const Model model = load_named_model("llama-2-7b", {"test", "model", ""}, options);
  return simulate_memory(lower(model, plan, run_segments(model, plan), 0));
}

TEST(SelectiveCheckpointing, KeepsMoreThanFullAndLessThanNothingCheckpointed) {
  Plan plan = single_gpu();
  const MemoryProfile none = profile(plan);
  plan.checkpointing = Checkpointing::selective;
  const MemoryProfile selective = profile(plan);
  plan.checkpointing = Checkpointing::full;
  const MemoryProfile full = profile(plan);
  EXPECT_LT(full.of(Phase::forward).end, selective.of(Phase::forward).end);
  EXPECT_LT(selective.of(Phase::forward).end, none.of(Phase::forward).end);
  for (const MemoryProfile* p : {&none, &selective, &full})
    EXPECT_EQ(p->of(Phase::step).end, none.of(Phase::step).end);  // nothing is left behind
}

TEST(SelectiveCheckpointing, KeepsTheResultsOfProductsAndAttention) {
  Plan plan = single_gpu();
  plan.checkpointing = Checkpointing::full;
  const std::int64_t full = profile(plan).of(Phase::forward).end;
  plan.checkpointing = Checkpointing::selective;
  const std::int64_t selective = profile(plan).of(Phase::forward).end;
  // q, k, v, attention, o: five of the hidden size; gate and up: two of the FFN; down: one of the
  // hidden size; all bf16; and an fp32 log-sum-exp a head.
  const std::int64_t tokens = 2 * 2048, hidden = 4096, ffn = 11008, heads = 32, layers = 32;
  EXPECT_EQ(selective - full, layers * tokens * (2 * (6 * hidden + 2 * ffn) + 4 * heads));
}

TEST(FusedLinearLoss, NeverHoldsAllLogits) {
  Plan plan = single_gpu();
  plan.workload.micro_batch = 8;
  plan.checkpointing = Checkpointing::full;
  const MemoryProfile plain = profile(plan);
  plan.loss = LossKind::fused_linear;
  const MemoryProfile fused = profile(plan);
  const std::int64_t logits = std::int64_t{8} * 2048 * 32000;
  // Hugging Face's loss holds 10 bytes a logit at the end of the forward pass.
  EXPECT_GT(plain.of(Phase::forward).peak - fused.of(Phase::forward).peak, 7 * logits);
  EXPECT_EQ(plain.of(Phase::step).end, fused.of(Phase::step).end);
}

TEST(FourBitBase, TakesHalfAByteAndItsScalesForEveryLinearOfTheBlocks) {
  Plan plan = single_gpu();
  plan.workload.lora = Lora{16, {"q_proj", "v_proj"}, Quantization::nf4_double};
  const BuildOptions options{
      .attention = plan.attention, .lora = plan.workload.lora, .loss = plan.loss};
  const Model model = load_named_model("llama-2-7b", {"test", "model", ""}, options);
  std::int64_t linears = 0, packed = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.quantized()) return;
    linears += repeat * p.numel;
    packed += repeat * stored_bytes(p, DType::bf16, Quantization::nf4_double);
  });
  EXPECT_EQ(linears, 6'476'005'376);
  // Half a byte, one byte a block of 64, four bytes a 256 blocks.
  // The last scales of the three FFN matrices do not fill a 512-byte block: 256 bytes each.
  const std::int64_t rounding = std::int64_t{32} * 3 * 256;
  EXPECT_EQ(packed, linears / 2 + linears / 64 + linears / 64 / 256 * 4 + rounding);
}

/// Layer norms and dropout make tensors in the recomputation that the forward pass did not make.
TEST(SelectiveCheckpointing, IsSimulatedBlockByBlockInFamiliesWithLayerNorms) {
  for (const char* config : {R"({"model_type": "gpt2"})", R"({"model_type": "opt"})",
                             R"({"model_type": "bert"})", R"({"model_type": "llama"})"}) {
    const Model model = model_of(config);
    Plan plan = zero_plan(2, "bf16-master", 2);
    const auto reserved = [&](Checkpointing checkpointing) {
      plan.checkpointing = checkpointing;
      return estimate(model, plan, Calibration{}).reserved.point;
    };
    const std::int64_t selective = reserved(Checkpointing::selective);
    EXPECT_LE(selective, reserved(Checkpointing::none)) << config;
    EXPECT_GE(selective, reserved(Checkpointing::full)) << config;
  }
}

}  // namespace
}  // namespace shardplan
