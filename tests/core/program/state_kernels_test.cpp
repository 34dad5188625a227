// Layers with a state through libraries' kernels (model/layers/scan_kernels.h), against closed
// forms of what their functions save: h hidden, d columns of the state space, H heads.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/tape.h"

#include <nlohmann/json.hpp>

namespace shardplan::state_kernels_test {
namespace {

constexpr std::int64_t kTokens = 2048;
const Sizes kSizes{2, kTokens / 2, 0};
constexpr Regime kPure{DType::bf16, DType::bf16};

Model model_with(const char* config, StateKernels kernels) {
  return build_model(load_model_config(Json::parse(config), "config.json"),
                     {.state_kernels = kernels});
}

struct Usage {
  std::int64_t kept = 0, forward = 0, backward = 0;  ///< bytes a token; the passes' peaks
};

/// Of a layer that takes fp32 hidden states.
Usage usage_of(const Model& model, const Sizes& sizes = kSizes) {
  const TapeRun run = run_tape(model, model.segments[1], kPure, sizes, DType::f32, TapeMode::keep);
  Usage u;
  const auto walk = [&](const std::vector<TapeEvent>& events, std::int64_t& peak) {
    for (const TapeEvent& e : events) {
      if (e.kind == TapeEvent::Kind::alloc) u.kept += e.bytes;
      if (e.kind == TapeEvent::Kind::free) u.kept -= e.bytes;
      peak = std::max(peak, u.kept);
    }
  };
  walk(run.forward, u.forward);
  const std::int64_t kept = u.kept / kTokens;
  walk(run.backward, u.backward);
  return {kept, u.forward / kTokens, u.backward / kTokens};
}

const Function& function_of(const Model& model, std::string_view name) {
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::function && segment.graph.function(op).name == name)
        return segment.graph.function(op);
  throw std::runtime_error("no such function");
}

std::int64_t bytes_a_token(const std::vector<FunctionTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const FunctionTensor& t : tensors)
    if (t.type != FunctionType::cast_weight)
      bytes += elements(t.extent, kSizes) * (t.type == FunctionType::wide ? 4 : 2);
  return bytes / kTokens;
}

/// The shape of Mamba2-2.7B.
constexpr const char* kMamba2 =
    R"({"model_type": "mamba2", "hidden_size": 2560, "num_heads": 80, "head_dim": 64,
        "n_groups": 1, "state_size": 128, "vocab_size": 512, "num_hidden_layers": 2})";

TEST(StateKernels, KeepWhatWasProjectedAndTheResultOfTheScan) {
  constexpr std::int64_t h = 2560, d = 5120, heads = 80, state = 128;
  // The norm in fp32 and its results; the projection, the scan's result and two statistics.
  constexpr std::int64_t norm = 4 * h + 2 * h + 2 * h;
  constexpr std::int64_t scan = 2 * (2 * d + 2 * state + heads) + 2 * d;
  EXPECT_EQ(usage_of(model_with(kMamba2, StateKernels::fused)).kept, norm + scan + 2 * 4);
}

TEST(StateKernels, TakeLessThanPyTorchsOperations) {
  const Usage fused = usage_of(model_with(kMamba2, StateKernels::fused));
  const Usage torch = usage_of(model_with(kMamba2, StateKernels::torch));
  // Scores of 256 tokens for each head, three times, in fp32.
  EXPECT_GT(torch.kept, fused.kept + 3 * 4 * 80 * 256);
  // The product of all pairs of a chunk's tokens with the whole state.
  EXPECT_GT(torch.forward, 4 * 80 * 256 * 128);
  EXPECT_GT(torch.backward, 2 * 4 * 80 * 256 * 128);
  EXPECT_LT(fused.backward, fused.kept + 4 * 2 * (2 * 5120 + 256 + 80) + 8 * 2 * 5120);
}

TEST(StateKernels, MambasFunctionKeepsThreeTensorsOfItsWidth) {
  const Model model = model_with(
      R"({"model_type": "mamba", "hidden_size": 2560, "state_size": 16, "vocab_size": 512,
          "num_hidden_layers": 2})",
      StateKernels::fused);
  // Both halves of the projection and the result; steps of rank 160 beside B and C, which are kept
  // twice; and a pair of fp32 numbers of each state for a sequence of up to 2,048 tokens.
  EXPECT_EQ(bytes_a_token(function_of(model, "mamba_inner_fn").kept),
            2 * (3 * 5120 + 160 + 4 * 16) + 2 * (8 * 5120 * 16) / kTokens);
}

TEST(StateKernels, DeltaRuleKeepsANinthOfWhatPyTorchKeeps) {
  const Model model = model_with(
      R"({"model_type": "qwen3_next", "num_hidden_layers": 1, "vocab_size": 512,
          "layer_types": ["linear_attention"], "num_experts": 16})",
      StateKernels::fused);
  // 32 heads, keys and values of 128: queries, keys, values, 64 columns of the solved system; a
  // number a head for rates, and three in fp32.
  EXPECT_EQ(bytes_a_token(function_of(model, "chunk_gated_delta_rule").kept),
            32 * (2 * (3 * 128 + 64) + 2 + 3 * 4));
}

TEST(StateKernels, FillTheLastChunkUp) {
  const Sizes odd{2, 100, 0};
  EXPECT_EQ(elements({3, Scale::chunk_tokens, 1, 64}, odd), 3 * 2 * 128);
  EXPECT_EQ(elements({3, Scale::chunks, 1, 64}, odd), 3 * 2 * 2);
  EXPECT_EQ(elements({3, Scale::chunk_ends, 1, 64}, odd), 3 * 2 * 3);
  EXPECT_EQ(elements({3, Scale::chunk_pairs, 1, 64}, odd), 3 * 2 * 9);
}

TEST(StateKernels, AreSaidInWhatIsAssumed) {
  const auto said = [](StateKernels kernels) {
    return model_with(kMamba2, kernels).facts.assumed.front();
  };
  EXPECT_NE(said(StateKernels::torch).find("PyTorch's own operations"), std::string::npos);
  EXPECT_NE(said(StateKernels::fused).find("no run confirms it"), std::string::npos);
}

}  // namespace
}  // namespace shardplan::state_kernels_test
