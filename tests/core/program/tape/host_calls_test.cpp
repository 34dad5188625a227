// What of a segment takes the host's time beside kernels: modules, checkpoints, experts' routing.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/program/tape/tape_testing.h"
#include "program/tape.h"
#include "support/plan_testing.h"

namespace shardplan::tape {
namespace {

TapeRun run_of(const Model& model, const Segment& segment, TapeMode mode,
               const TapeOptions& options = {}) {
  return run_tape(model, segment, kTestPure, kTestSizes, kTestPure.params, mode, options);
}

std::int32_t calls(const std::vector<Kernel>& kernels, Issue issue) {
  std::int32_t sum = 0;
  for (const Kernel& k : kernels)
    if (k.issue == issue) sum += k.calls;
  return sum;
}

TEST(HostCalls, OfALinearAreItsModulesAndOneForEachProductBackward) {
  const Model model = two_linears();
  const TapeRun run = run_of(model, model.segments.front(), TapeMode::keep);
  EXPECT_EQ(calls(run.forward_kernels, Issue::linear), 2);
  EXPECT_EQ(calls(run.backward_kernels, Issue::linear_node), 4);
}

TEST(HostCalls, OfACheckpointStandBesideBothOfItsForwardPasses) {
  const Model model = two_linears();
  const Segment& segment = model.segments.front();
  EXPECT_EQ(calls(run_of(model, segment, TapeMode::keep).forward_kernels, Issue::checkpoint), 0);
  EXPECT_EQ(calls(run_of(model, segment, TapeMode::discard).forward_kernels, Issue::checkpoint), 1);
  EXPECT_EQ(calls(run_of(model, segment, TapeMode::redo).backward_kernels, Issue::recompute), 1);
  EXPECT_EQ(calls(run_of(model, segment, TapeMode::redo, {.module_calls = true}).backward_kernels,
                  Issue::recompute),
            0);
}

TEST(HostCalls, OfLigersKernelsAreAFunctionOfAutogradEach) {
  const auto llama = [](bool patches) {
    BuildOptions options;
    options.requested.patches = patches;
    const Model model = model_of(
        R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
            "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 128})",
        options);
    return run_of(model, model.segments[1], TapeMode::keep);
  };
  // Two norms, the positions of queries and of keys, and the gate.
  const TapeRun liger = llama(true), plain = llama(false);
  EXPECT_EQ(calls(liger.forward_kernels, Issue::fused), 5);
  EXPECT_EQ(calls(liger.backward_kernels, Issue::fused_node), 5);
  EXPECT_EQ(calls(plain.forward_kernels, Issue::fused), 0);
  EXPECT_EQ(calls(plain.backward_kernels, Issue::fused_node), 0);
}

// Whether there are outliers, and the zero that is put into their columns.
TEST(HostCalls, OfALinearInEightBitsWaitTwiceAndAreAFunctionEachWay) {
  BuildOptions options;
  options.lora = Lora{};
  options.lora->targets = {"q_proj"};
  options.lora->base = Quantization::int8;
  const Model model = model_of(
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 128})",
      options);
  const TapeRun run = run_of(model, model.segments[1], TapeMode::keep);
  constexpr int kLinears = 7, kAdapters = 2;
  EXPECT_EQ(calls(run.forward_kernels, Issue::waited), kLinears);
  EXPECT_EQ(std::ranges::count(run.forward, TapeEvent::Kind::host_waits, &TapeEvent::kind),
            kLinears);
  EXPECT_EQ(calls(run.forward_kernels, Issue::fused), kLinears);
  EXPECT_EQ(calls(run.forward_kernels, Issue::linear), kLinears + kAdapters);
  EXPECT_EQ(calls(run.backward_kernels, Issue::fused_node), kLinears);
}

// Not as views are, which take nothing (HostRates::empty).
TEST(HostCalls, ThatStartNothingTakeTimeAllTheSame) {
  const Model model = two_linears();
  const Segment& segment = model.segments.front();
  const TapeOptions offloads{.offloading = ActivationOffloading::streams};
  const TapeRun plain = run_of(model, segment, TapeMode::keep);
  const TapeRun sent = run_of(model, segment, TapeMode::keep, offloads);
  EXPECT_EQ(calls(plain.forward_kernels, Issue::loop), 0);
  EXPECT_GT(calls(sent.forward_kernels, Issue::loop), 0);
}

TEST(HostCalls, OfAPolicysCheckpointGoThroughPythonOneByOne) {
  const Model model = two_linears();
  const Segment& segment = model.segments.front();
  const TapeOptions selective{.kept = KeptResults::products, .stops_early = false};
  const auto started = [&](TapeMode mode, const TapeOptions& options) {
    return run_of(model, segment, mode, options);
  };
  // Of each linear a transpose, two views and the product, of which both are kept.
  EXPECT_EQ(calls(started(TapeMode::discard, selective).forward_kernels, Issue::dispatched), 8);
  const TapeRun again = started(TapeMode::redo, selective);
  EXPECT_EQ(calls(again.backward_kernels, Issue::redispatched), 8);
  EXPECT_EQ(calls(again.backward_kernels, Issue::linear), 2) << "modules run, products do not";
  // Each linear saves its input and its weight, which the hook of the recomputation detaches.
  EXPECT_EQ(calls(again.backward_kernels, Issue::detached), 4);
  EXPECT_EQ(calls(started(TapeMode::discard, selective).forward_kernels, Issue::detached), 0);
  EXPECT_EQ(calls(started(TapeMode::redo, {}).backward_kernels, Issue::detached), 0);
  EXPECT_EQ(calls(started(TapeMode::discard, {}).forward_kernels, Issue::dispatched), 0);
  EXPECT_EQ(calls(started(TapeMode::keep, selective).forward_kernels, Issue::dispatched), 0);
}

/// Of the numbers that put rows in order, in 64 bits.
std::int32_t index_kernels(const std::vector<Kernel>& kernels) {
  std::int32_t sum = 0;
  for (const Kernel& k : kernels)
    if (k.type == DType::i64) sum += k.calls;
  return sum;
}

TEST(HostCalls, OfExpertsPutTokensInOrderUnlessMegatronDoes) {
  const auto mixtral = [](const BuildOptions& options) {
    return model_of(
        R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 128,
            "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
            "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 128})",
        options);
  };
  const auto launched = [](const Model& model) {
    std::int32_t sum = 0;
    for (const Segment& segment : model.segments)
      sum += index_kernels(run_of(model, segment, TapeMode::keep).backward_kernels);
    return sum;
  };
  EXPECT_EQ(launched(mixtral({})), 2 * 18);
  EXPECT_EQ(launched(mixtral({.kernels = KernelSet::megatron})), 0);
}

TEST(HostCalls, OfExpertsInFp32AreAProductEachThatTheHostWaitsBefore) {
  const Model model = model_of(
      R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
          "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 128})");
  const auto waits = [](const std::vector<TapeEvent>& events) {
    return std::ranges::count(events, TapeEvent::Kind::host_waits, &TapeEvent::kind);
  };
  const auto products = [](const std::vector<Kernel>& kernels) {
    std::int32_t sum = 0;
    for (const Kernel& k : kernels)
      if (k.kind == KernelKind::product && k.issue == Issue::inner) sum += k.calls;
    return sum;
  };
  const Segment& block = model.segments[1];
  const auto run = [&](const Regime& regime) {
    return run_tape(model, block, regime, kTestSizes, DType::bf16, TapeMode::keep, {});
  };
  const TapeRun pure = run(kTestPure), autocast = run(kTestAutocast);
  EXPECT_EQ(waits(pure.forward) + waits(pure.backward), 0);
  EXPECT_EQ(products(pure.forward_kernels), 0);
  EXPECT_EQ(waits(autocast.forward), 2);
  EXPECT_EQ(waits(autocast.backward), 4);
  EXPECT_EQ(products(autocast.forward_kernels), 2 * 4);
  EXPECT_EQ(products(autocast.backward_kernels), 4 * 4);
}

/// Of a network's second segment, a block.
TapeRun block_of(std::string_view config, const Regime& regime, TapeMode mode,
                 const TapeOptions& options = {}) {
  const Model model = model_of(config);
  return run_tape(model, model.segments[1], regime, kTestSizes, regime.params, mode, options);
}

std::int32_t casts(const std::vector<Kernel>& kernels, double elements) {
  std::int32_t sum = 0;
  for (const Kernel& k : kernels)
    if (k.elements == elements && k.bytes == 6 * elements) sum += k.calls;
  return sum;
}

// As tensors without data have it on a GPU: weights and biases of two norms in 16 bits, which
// autocast widens; in fp32 biases of its linears, which it narrows. Both ways.
TEST(HostCalls, OfAutocastAreItsCastsOfNormsAndBiasesBothWays) {
  constexpr std::string_view kBert =
      R"({"model_type": "bert", "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 128})";
  const Regime half{.params = DType::bf16, .compute = DType::bf16, .wrapped = true};
  const TapeRun widens = block_of(kBert, half, TapeMode::keep);
  constexpr int kNorms = 2, kBiases = 5;  // 64 wide, beside one of 128
  EXPECT_EQ(casts(widens.forward_kernels, 64), 2 * kNorms);
  EXPECT_EQ(casts(widens.backward_kernels, 64), 2 * kNorms);
  const TapeRun narrows = block_of(kBert, kTestAutocast, TapeMode::keep);
  EXPECT_EQ(casts(narrows.forward_kernels, 64), kBiases);
  EXPECT_EQ(casts(narrows.backward_kernels, 64), kBiases);
  EXPECT_EQ(casts(narrows.backward_kernels, 128), 1);
}

// Counted in a block of transformers' Llama under torchtitan's policy, on a CPU: 73 operations, and
// 70 again, as the last linear ends at its product.
TEST(HostCalls, OfAPolicyAreTheViewsAroundAttentionToo) {
  constexpr std::string_view kLlama =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
          "vocab_size": 128})";
  const TapeOptions policy{.kept = KeptResults::most_products, .product_share = 2};
  EXPECT_EQ(calls(block_of(kLlama, kTestPure, TapeMode::discard, policy).forward_kernels,
                  Issue::dispatched),
            73);
  const TapeRun again = block_of(kLlama, kTestPure, TapeMode::redo, policy);
  EXPECT_EQ(calls(again.backward_kernels, Issue::redispatched), 70);
}

}  // namespace
}  // namespace shardplan::tape
