// A tiled feed-forward against PyTorch on the CPU: tests/golden/tiled_mlp.json was written by
// tests/accuracy/measure/kept_tensors/tiled_mlp.py, which runs the functions of DeepSpeed, axolotl
// and verl.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "json/reader.h"
#include "program/tape.h"
#include "program/tape/tiled_part.h"
#include "support/plan_testing.h"

namespace shardplan::tiled_mlp_test {
namespace {

const Json& cases() {
  static const Json kFile = read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/tiled_mlp.json");
  return kFile.at("cases");
}

TileSums sums_of(const Json& c) {
  const std::string name = c.at("sums");
  if (name == "copies") return TileSums::copies;
  return name == "hooks" ? TileSums::hooks : TileSums::autograd;
}

Model llama(const Json& c) {
  Model model = model_of(Json{
      {"model_type", "llama"},
      {"num_hidden_layers", 2},
      {"vocab_size", 512},
      {"num_attention_heads", 4},
      {"hidden_size", c.at("hidden")},
      {"intermediate_size",
       c.at("intermediate")}}.dump());
  for (Parameter& p : model.parameters) p.trainable = c.at("trains");
  return model;
}

/// The feed-forward of a layer alone.
Segment feed_forward(const Model& model) {
  const auto parts = tape::tiled_parts(model.segments[1].graph, {.count = 2});
  EXPECT_EQ(parts.size(), 1U);
  const Graph& inner = parts.at(0).whole.graph;
  Segment segment;
  Graph& g = segment.graph;
  g.chained_input(inner.value(inner.inputs()[0].value).extent);
  g.set_tiled(true);
  for (const Op& op : inner.ops()) g.op(op, inner.value(op.out).extent);
  g.set_output(inner.output());
  return segment;
}

struct Usage {
  std::int64_t peak = 0, left = 0;
};

/// What events have alive beside the caller's tensors, `start` of the run's own before them.
Usage usage(const std::vector<TapeEvent>& events, std::int64_t start, bool accumulates) {
  Usage u{start, start};
  for (const TapeEvent& e : events) {
    const bool own = e.id != kChainedInputSlot && e.id != kChainedGradientSlot;
    if (e.kind == TapeEvent::Kind::alloc && own) u.left += e.bytes;
    if (e.kind == TapeEvent::Kind::free && own) u.left -= e.bytes;
    if (e.kind == TapeEvent::Kind::gradient && !accumulates) u.left += e.bytes;
    u.peak = std::max(u.peak, u.left);
  }
  return u;
}

TapeRun run_case(const Json& c, TileSums sums) {
  const DType params = c.at("params") == "float32" ? DType::f32 : DType::bf16;
  const Model model = llama(c);
  const Segment segment = feed_forward(model);
  TapeOptions options;
  options.tiles = {c.at("parts"), sums, c.at("accumulates")};
  const Regime regime{params, DType::bf16};
  return run_tape(model, segment, regime, {c.at("batch"), c.at("sequence"), 0}, params,
                  TapeMode::keep, options);
}

TEST(TiledMlp, HasAliveWhatPyTorchHas) {
  for (const Json& c : cases()) {
    const TapeRun run = run_case(c, sums_of(c));
    Usage forward = usage(run.forward, 0, false);
    for (const auto* gone : {&run.until_autocast_ends, &run.until_forward_ends})
      for (const TapeEvent& e : *gone) forward.left -= e.bytes;
    EXPECT_EQ(forward.peak, c.at("forward_peak")) << c;
    EXPECT_EQ(forward.left, c.at("forward_left")) << c;
    const Usage backward = usage(run.backward, run.output_bytes, c.at("accumulates"));
    EXPECT_EQ(backward.peak, c.at("backward_peak")) << c;
    if (c.at("accumulates")) continue;  // the framework adds to what is there
    EXPECT_EQ(backward.left, c.at("backward_left")) << c;
  }
}

TEST(TiledMlp, GivesAnEngineEachGradientOnce) {
  for (const TileSums sums : {TileSums::last_part, TileSums::hooks, TileSums::copies}) {
    const TapeRun run = run_case(cases()[0], sums);
    const auto gradients = std::ranges::count_if(
        run.backward, [](const TapeEvent& e) { return e.kind == TapeEvent::Kind::gradient; });
    EXPECT_EQ(gradients, 3);
  }
}

/// Without tiles the forward pass keeps the products' results and the activation's.
TEST(TiledMlp, KeepsItsInputAlone) {
  Json c = cases()[0];
  const std::int64_t rows = c.at("sequence"), ffn = c.at("intermediate");
  const auto left = [&] {
    const TapeRun run = run_case(c, TileSums::autograd);
    return usage(run.forward, 0, false).left - run.output_bytes;
  };
  EXPECT_EQ(left(), 0);
  c["parts"] = 0;
  EXPECT_EQ(left(), 4 * rows * ffn * 2);
}

/// What is computed again is no work of the model's.
TEST(TiledMlp, CountsItsWorkOnce) {
  Json c = cases()[0];
  const double tiled = run_case(c, TileSums::autograd).model_flops;
  c["parts"] = 0;
  EXPECT_DOUBLE_EQ(tiled, run_case(c, TileSums::autograd).model_flops);
}

}  // namespace
}  // namespace shardplan::tiled_mlp_test
