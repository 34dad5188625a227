// Adapters over a base of few bits, as bitsandbytes and peft run it.
#include <gtest/gtest.h>

#include <algorithm>

#include "load/model.h"
#include "load/precision.h"
#include "lowering/loaded_weights.h"
#include "lowering/lower.h"
#include "lowering/stored_weights.h"
#include "lowering/tensors.h"
#include "parallel/sharding.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

constexpr std::int64_t kTokens = 2 * 2048, kHidden = 4096, kFfn = 11008;

Plan plan_of(Quantization base, std::string_view precision = "bf16-pure") {
  Plan plan;
  plan.framework.kind = FrameworkKind::single;
  plan.precision = precision_preset(precision);
  plan.cluster.gpu.compute_capability = "9.0";
  plan.cluster.gpu.abilities.blas_workspace_bytes = 32 * kMiB;
  plan.workload.micro_batch = 2;
  plan.workload.lora = Lora{16, {"q_proj", "v_proj"}, base, {}};
  return plan;
}

Model llama(const Plan& plan) {
  return load_named_model(
      "llama-2-7b", {"test", "model", ""},
      {.attention = plan.attention, .lora = plan.workload.lora, .loss = plan.loss});
}

/// The largest block of `category` that one block's run allocates in both passes.
std::int64_t largest(const Plan& plan, Category category) {
  const Model model = llama(plan);
  const ModelRun run = run_segments(model, plan);
  std::int64_t most = 0;
  for (const auto* events : {&run.segments[1].forward.forward, &run.segments[1].backward.backward})
    for (const TapeEvent& e : *events)
      if (e.kind == TapeEvent::Kind::alloc && e.category == category)
        most = std::max(most, e.bytes);
  return most;
}

/// What one block's forward pass leaves for its backward pass, its output among it.
std::int64_t kept_by_block(const Plan& plan) {
  const Model model = llama(plan);
  const ModelRun run = run_segments(model, plan);
  std::int64_t live = 0;
  for (const TapeEvent& e : run.segments[1].forward.forward) {
    if (e.kind == TapeEvent::Kind::alloc) live += e.bytes;
    if (e.kind == TapeEvent::Kind::free) live -= e.bytes;
  }
  return live;
}

TEST(QuantizedBase, WidensOneWeightAtATimeToTheComputeType) {
  EXPECT_EQ(largest(plan_of(Quantization::nf4), Category::workspace), 2 * kHidden * kFfn);
  EXPECT_EQ(largest(plan_of(Quantization::none), Category::workspace), 0);
}

TEST(QuantizedBase, KeepsNothingOfAWidenedWeight) {
  const Plan plan = plan_of(Quantization::nf4_double);
  const Model model = llama(plan);
  const ModelRun run = run_segments(model, plan);
  std::int64_t live = 0;
  for (const TapeEvent& e : run.segments[1].forward.forward) {
    if (e.category != Category::workspace) continue;
    live += e.kind == TapeEvent::Kind::alloc ? e.bytes : -e.bytes;
    // Beside the weight two tensors of its scales, in fp32.
    EXPECT_LE(live, 2 * kHidden * kFfn + 2 * 4 * kHidden * kFfn / 64);
  }
  EXPECT_EQ(live, 0);
}

/// Calls of bitsandbytes' functions in one block's forward pass.
std::int64_t widenings(const Plan& plan) {
  const Model model = llama(plan);
  std::int64_t calls = 0;
  for (const Kernel& k : run_segments(model, plan).segments[1].forward.forward_kernels)
    if (k.issue == Issue::fused) calls += k.calls;
  return calls;
}

/// Each product widens its weight; of two adapted ones DoRA measures the rows (peft,
/// utils/integrations.py, dequantize_module_weight), for which they are widened once more.
TEST(QuantizedBase, IsWidenedOnceMoreForTheLengthsOfItsRows) {
  Plan plan = plan_of(Quantization::nf4);
  EXPECT_EQ(widenings(plan), 7);
  plan.workload.lora->magnitudes = true;
  EXPECT_EQ(widenings(plan), 7 + 2);
}

TEST(KbitPreparation, KeepsWhatIsNotQuantizedInFp32) {
  Plan plan = plan_of(Quantization::nf4);
  const Model model = llama(plan);
  const std::int64_t before = parameter_bytes(model, plan);
  plan.workload.lora->prepare_kbit = true;
  std::int64_t plain = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.quantized() && !p.adapter) plain += repeat * p.numel;
  });
  EXPECT_EQ(plain, 2 * 32000 * kHidden + (2 * 32 + 1) * kHidden);  // embeddings, head, norms
  EXPECT_EQ(parameter_bytes(model, plan) - before, 2 * plain);
}

/// peft 0.20 gives cached segments back when all of it has been widened, before adapters come.
TEST(KbitPreparation, EmptiesTheCacheBehindIt) {
  Plan plan = plan_of(Quantization::nf4);
  const auto emptied = [&] {
    return std::ranges::count(load_packed_model(llama(plan), plan), Event::Kind::empty_cache,
                              &Event::kind);
  };
  plan.workload.lora->prepare_kbit = false;
  EXPECT_EQ(emptied(), 0);
  plan.workload.lora->prepare_kbit = true;
  EXPECT_EQ(emptied(), 1);
}

/// The stream is as wide as the embedding, and bitsandbytes answers in the type it was asked in.
TEST(KbitPreparation, WidensTheStreamThroughBlocks) {
  Plan plan = plan_of(Quantization::nf4, "bf16-autocast");
  const auto stream = [&] { return run_segments(llama(plan), plan).segments[1].forward; };
  plan.workload.lora->prepare_kbit = true;
  EXPECT_EQ(stream().output_dtype, DType::f32);
  EXPECT_EQ(stream().output_bytes, kTokens * kHidden * 4);
  plan.precision = precision_preset("bf16-pure");
  plan.workload.lora->prepare_kbit = false;
  EXPECT_EQ(stream().output_dtype, DType::bf16);
}

TEST(KbitPreparation, MakesABlockKeepMoreUnderAutocast) {
  Plan plan = plan_of(Quantization::nf4, "bf16-autocast");
  plan.workload.lora->prepare_kbit = true;
  const std::int64_t prepared = kept_by_block(plan);
  plan.precision = precision_preset("bf16-pure");
  plan.workload.lora->prepare_kbit = false;
  const std::int64_t plain = kept_by_block(plan);
  // Gate, its activation and the up projection in fp32; the two adapters' inputs, which were copied
  // to fp32, in 16 bits. Norms are wide in both.
  EXPECT_NEAR(static_cast<double>(prepared - plain),
              static_cast<double>(2 * kTokens * (3 * kFfn - 2 * kHidden)), 1 << 20);
}

/// Without autocast the attention of a prepared model runs in fp32, but products of quantized
/// weights in the compute type.
TEST(KbitPreparation, ComputesInFp32WithoutAutocast) {
  Plan plan = plan_of(Quantization::nf4);
  plan.workload.lora->prepare_kbit = true;
  const Regime regime = regime_of(plan);
  EXPECT_EQ(regime.params, DType::f32);
  EXPECT_EQ(regime.compute, DType::f32);
  EXPECT_EQ(regime.widened(), DType::bf16);
  EXPECT_EQ(largest(plan, Category::workspace), 2 * kHidden * kFfn);
}

/// Inputs of q, k and v, of o, of gate and up, and of down, in the type that they come in.
TEST(Int8Base, KeepsInputsAsLongAsTheGraphLives) {
  for (const Checkpointing how : {Checkpointing::none, Checkpointing::full}) {
    Plan plan = plan_of(Quantization::int8);
    plan.checkpointing = how;
    const Model model = llama(plan);
    const ModelRun run = run_segments(model, plan);
    std::int64_t held = 0;
    for (const TapeEvent& e : run.segments[1].forward.held) held += e.bytes;
    EXPECT_EQ(held, 2 * kTokens * (3 * kHidden + kFfn));
    const Program program = lower(model, plan, run, 0);
    EXPECT_EQ(simulate_memory(program).phases[static_cast<std::size_t>(Phase::step)].end,
              total_bytes(program.resident));
    EXPECT_EQ(program.held_at_most, 32 * 2 * kTokens * kFfn);  // outliers of down's inputs
  }
}

TEST(Int8Base, IsOneByteAnElementAndAScaleARow) {
  const Plan plan = plan_of(Quantization::int8);
  const Model model = llama(plan);
  const auto q = std::ranges::find_if(model.parameters, &Parameter::quantized);
  EXPECT_EQ(stored_bytes(*q, DType::bf16, Quantization::int8), kHidden * kHidden + 4 * kHidden);
}

/// The input's gradient is made of a weight in the input's type.
TEST(Int8Base, WidensAWeightForTheBackwardPass) {
  Plan plan = plan_of(Quantization::int8, "bf16-autocast");
  plan.workload.lora->prepare_kbit = true;
  EXPECT_EQ(largest(plan, Category::workspace), 4 * kHidden * kFfn);  // fp32, as the norms answer
}

TEST(Int8Base, CannotBeSharded) {
  Plan plan = plan_of(Quantization::int8);
  plan.cluster = cluster_of(2);
  const Model model = llama(plan);
  EXPECT_FALSE(sharding_problem(model, plan).has_value());
  plan.framework.kind = FrameworkKind::fsdp2;
  EXPECT_TRUE(sharding_problem(model, plan).has_value());
  plan.framework.kind = FrameworkKind::deepspeed;
  plan.framework.deepspeed.zero.stage = 3;
  EXPECT_TRUE(sharding_problem(model, plan).has_value());
}

/// Elements of routers that are stored in 4 bits, and of those that are not.
struct Routers {
  std::int64_t quantized = 0, whole = 0;
};

Routers routers_of(std::string_view config) {
  const Json json = Json::parse(config);
  const Model model =
      load_model(json, {"test", "model", ""},
                 {.lora = Lora{16, {"q_proj", "v_proj"}, Quantization::nf4_double, {}}});
  Routers found;
  for (const ParameterGroup& group : model.groups)
    for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
      const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
      const bool router = p.shape.size() == 2 && p.shape.front() == 8 && p.shape.back() == 64;
      if (router) (p.quantized() ? found.quantized : found.whole) += group.repeat * p.numel;
    }
  return found;
}

/// Two layers of 8 experts over 64 wide rows. transformers 5 has Mixtral's router as a parameter of
/// a module of its own; Jamba's is an nn.Linear, which bitsandbytes replaces.
TEST(QuantizedBase, LeavesRoutersThatAreNoLinearsInSixteenBits) {
  const Routers mixtral = routers_of(R"({"model_type": "mixtral", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 256, "num_local_experts": 8})");
  EXPECT_EQ(mixtral.whole, 2 * 8 * 64);
  EXPECT_EQ(mixtral.quantized, 0);
  const Routers jamba = routers_of(R"({"model_type": "jamba", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 256, "num_experts": 8, "expert_layer_period": 2,
      "expert_layer_offset": 1, "attn_layer_period": 2, "attn_layer_offset": 1,
      "mamba_dt_rank": 4})");
  EXPECT_EQ(jamba.whole, 0);
  EXPECT_EQ(jamba.quantized, 8 * 64);
}

}  // namespace
}  // namespace shardplan
