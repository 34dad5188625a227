#include "program/compiled/cuts.h"

#include "program/compiled/breaks.h"

#include <gtest/gtest.h>

#include <set>

#include "base/units.h"
#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "model/model.h"

namespace shardplan::compiled {
namespace {

Model llama_of(std::int64_t layers, std::int64_t hidden, std::int64_t inner) {
  Json config = Json::parse(R"({"model_type": "llama", "num_attention_heads": 32,
                                "num_key_value_heads": 8, "vocab_size": 128256,
                                "tie_word_embeddings": true})");
  config["num_hidden_layers"] = layers;
  config["hidden_size"] = hidden;
  config["intermediate_size"] = inner;
  return build_model(load_model_config(config, "config.json"), {});
}

Regime bf16() {
  Regime regime;
  regime.params = regime.compute = DType::bf16;
  return regime;
}

const std::vector<Cut>& cuts_of_blocks(const Model& model, const GraphCuts& cuts) {
  for (std::size_t s = 0; s < model.segments.size(); ++s)
    if (model.segments[s].checkpointable) return cuts.segments[s];
  throw std::logic_error("no blocks");
}

/// The graphs that the block's products are in, in execution order.
std::vector<std::int32_t> of_products(const Model& model, const Cut& cut) {
  std::vector<std::int32_t> graphs;
  for (const Segment& segment : model.segments)
    for (std::size_t i = 0; segment.checkpointable && i < cut.parts.size(); ++i)
      if (segment.graph.ops()[i].kind == OpKind::linear) graphs.push_back(cut.parts[i]);
  return graphs;
}

constexpr std::int64_t kBucket = 25 * kMiB;

// As DDPOptimizer of PyTorch 2.11 cuts the graph of this model: attention with what is before it,
// gate, up, and down with the attention of the next block.
TEST(GraphCuts, EndsAGraphWhereItsParametersFillABucket) {
  const Model model = llama_of(3, 2048, 8192);
  const GraphCuts cuts = graph_cuts(model, bf16(), kBucket, false);
  const std::vector<Cut>& blocks = cuts_of_blocks(model, cuts);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].count, 3);
  EXPECT_EQ(of_products(model, blocks[0]), (std::vector<std::int32_t>{0, 0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(cuts.causal, 3);
  EXPECT_EQ(cuts.sliding, 1);
}

TEST(GraphCuts, CutsSmallBlocksHereAndThere) {
  const Model model = llama_of(12, 512, 2048);  // 9 MB a block
  const GraphCuts cuts = graph_cuts(model, bf16(), kBucket, false);
  std::int64_t blocks = 0, cut = 0;
  for (const Cut& c : cuts_of_blocks(model, cuts)) {
    blocks += c.count;
    if (std::set<std::int32_t>(c.parts.begin(), c.parts.end()).size() > 1) cut += c.count;
  }
  EXPECT_EQ(blocks, 12);
  EXPECT_GT(cut, 0);
  EXPECT_LT(cut, 12);
  EXPECT_LT(cuts.causal, 12);
}

TEST(GraphCuts, LeavesCheckpointedBlocksWhole) {
  const Model model = llama_of(3, 2048, 8192);
  const GraphCuts cuts = graph_cuts(model, bf16(), kBucket, true);
  for (const Cut& c : cuts_of_blocks(model, cuts))
    EXPECT_EQ(std::set<std::int32_t>(c.parts.begin(), c.parts.end()).size(), 1u);
  EXPECT_EQ(cuts.causal, 1);
}

TEST(GraphCuts, CutsNothingWithoutBuckets) {
  const Model model = llama_of(3, 2048, 8192);
  for (const std::vector<Cut>& segment : graph_cuts(model, bf16(), 0, false).segments)
    EXPECT_TRUE(segment.empty());
}

// As DDPOptimizer cuts the pieces of this model's layers between Liger's functions: v apart from q
// and k; attention and its output together; the norm, gate, up and down.
TEST(GraphCuts, CutsPiecesBetweenBreaksOneByOne) {
  Json config = Json::parse(R"({"model_type": "llama", "num_attention_heads": 32,
                                "num_key_value_heads": 8, "vocab_size": 32000, "hidden_size": 2048,
                                "intermediate_size": 8192, "num_hidden_layers": 2})");
  BuildOptions options;
  options.requested.patches = true;
  const Model model = build_model(load_model_config(config, "config.json"), options);
  for (const Segment& segment : model.segments) {
    if (!segment.checkpointable) continue;
    const std::vector<std::int32_t> parts =
        cut_between_breaks(model, bf16(), segment.graph, parts_at_breaks(model, segment), kBucket);
    const Cut cut{parts, 1};
    std::vector<std::int32_t> products;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (segment.graph.ops()[i].kind == OpKind::linear) products.push_back(cut.parts[i]);
    EXPECT_TRUE(is_cut(parts));
    EXPECT_FALSE(is_cut(parts_at_breaks(model, segment)));
    EXPECT_EQ(products, (std::vector<std::int32_t>{2, 2, 3, 4, 6, 7, 8}));
  }
}

TEST(CutChoice, StandsForAllRepetitions) {
  const std::vector<Cut> cuts{{{0, 0}, 3}, {{0, 1}, 4}, {{0, 2}, 1}};
  const CutChoice choice = choose(cuts, {100, 200, 500});  // 1,600 bytes in all, 200 in the mean
  EXPECT_EQ(choice.own, 1u);
  EXPECT_EQ(choice.others, 0u);
  EXPECT_EQ(choice.count, 8);                            // 8 · 200
  const CutChoice less = choose(cuts, {100, 200, 300});  // 1,400
  EXPECT_EQ(less.own, 1u);
  EXPECT_EQ(less.others, 0u);
  EXPECT_EQ(less.count, 6);  // 6 · 200 + 2 · 100
}

TEST(CutChoice, TakesTheOnlyCut) {
  const CutChoice choice = choose({{{0, 1}, 24}}, {100});
  EXPECT_EQ(choice.own, choice.others);
  EXPECT_EQ(choice.count, 24);
}

}  // namespace
}  // namespace shardplan::compiled
