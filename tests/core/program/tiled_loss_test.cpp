// ALST's tiled loss against PyTorch on the CPU: tests/golden/tiled_loss.json was written by
// tests/accuracy/measure/kept_tensors/tiled_loss.py, which runs DeepSpeed's function.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "json/reader.h"
#include "program/tape.h"
#include "support/plan_testing.h"

namespace shardplan::tiled_loss_test {
namespace {

const Json& golden() {
  static const Json kFile = read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/tiled_loss.json");
  return kFile;
}

DType type_of(const Json& c) {
  return c.at("params") == "float32" ? DType::f32 : DType::bf16;
}

Regime regime_of_case(const Json& c) {
  return {type_of(c), c.at("autocast") ? DType::bf16 : type_of(c)};
}

Model llama(const Json& c) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.loss = LossKind::tiled;
  BuildOptions options = build_options(plan);
  options.all_f32 = regime_of_case(c).compute == DType::f32;
  Model model = model_of(Json{{"model_type", "llama"},
                              {"num_hidden_layers", 2},
                              {"num_attention_heads", 4},
                              {"intermediate_size", 640},
                              {"tie_word_embeddings", false},
                              {"vocab_size", c.at("vocabulary")},
                              {"hidden_size", c.at("hidden")}}
                             .dump(),
                         options);
  for (Parameter& p : model.parameters) p.trainable = c.at("trains");
  return model;
}

/// The head and the loss alone, in as many parts as the case has.
struct Loss {
  FusedKernel kernel;
  Segment segment;

  Loss(const Model& model, const Json& c) {
    const Graph& whole = model.segments.back().graph;
    const auto& ops = whole.ops();
    const auto loss = std::ranges::find_if(
        ops, [](const Op& op) { return op.kind == OpKind::fused_linear_loss; });
    kernel = *loss->fused;
    EXPECT_EQ(kernel.part_bytes, std::int64_t{1} << 30);
    const std::int64_t rows =
        c.at("batch").get<std::int64_t>() * c.at("sequence").get<std::int64_t>();
    kernel.part_bytes =
        4 * rows * c.at("vocabulary").get<std::int64_t>() / c.at("parts").get<std::int64_t>();
    Graph& g = segment.graph;
    Op op = *loss;
    op.in[0] = g.chained_input(whole.value(loss->in[0]).extent);
    op.fused = &kernel;
    g.set_output(g.op(op, whole.value(loss->out).extent));
  }
};

struct Usage {
  std::int64_t peak = 0, left = 0;
};

Usage usage(const std::vector<TapeEvent>& events) {
  Usage u;
  for (const TapeEvent& e : events) {
    const bool own = e.id != kChainedInputSlot && e.id != kChainedGradientSlot;
    if (e.kind == TapeEvent::Kind::alloc && own) u.left += e.bytes;
    if (e.kind == TapeEvent::Kind::free && own) u.left -= e.bytes;
    u.peak = std::max(u.peak, u.left);
  }
  return u;
}

/// Numbers such as each part's loss, of one allocation unit each, are not counted.
constexpr std::int64_t kNumbers = 8 * kAllocationUnit;

TEST(TiledLoss, HasAliveWhatPyTorchHas) {
  for (const Json& c : golden().at("cases")) {
    const Model model = llama(c);
    const Loss loss(model, c);
    const TapeRun run = run_tape(model, loss.segment, regime_of_case(c),
                                 {c.at("batch"), c.at("sequence"), 0}, type_of(c), TapeMode::keep);
    Usage forward = usage(run.forward);
    for (const auto* gone : {&run.until_autocast_ends, &run.until_forward_ends})
      for (const TapeEvent& e : *gone) forward.left -= e.bytes;
    const auto peak = c.at("forward_peak").get<std::int64_t>();
    EXPECT_LE(forward.peak, peak) << c;
    EXPECT_GE(forward.peak, peak - kNumbers) << c;
    EXPECT_EQ(forward.left, c.at("forward_left")) << c;
  }
}

/// The gradients are made in the forward pass, and handed on in the backward pass.
TEST(TiledLoss, GivesTheHeadsGradientOnce) {
  const Json& c = golden().at("cases").at(0);
  const Model model = llama(c);
  const Loss loss(model, c);
  const TapeRun run = run_tape(model, loss.segment, regime_of_case(c),
                               {c.at("batch"), c.at("sequence"), 0}, type_of(c), TapeMode::keep);
  const auto is_gradient = [](const TapeEvent& e) { return e.kind == TapeEvent::Kind::gradient; };
  EXPECT_EQ(std::ranges::count_if(run.forward, is_gradient), 0);
  EXPECT_EQ(std::ranges::count_if(run.backward, is_gradient), 1);
}

}  // namespace
}  // namespace shardplan::tiled_loss_test
