#include "program/compiled/breaks.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "json/document.h"
#include "kernels/registry.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"

namespace shardplan::compiled {
namespace {

Model qwen3(bool liger) {
  const Json config = Json::parse(R"({"model_type": "qwen3", "num_attention_heads": 16,
                                      "num_key_value_heads": 8, "hidden_size": 1024,
                                      "intermediate_size": 3072, "vocab_size": 32000,
                                      "num_hidden_layers": 2})");
  BuildOptions options;
  options.requested.patches = liger;
  return build_model(load_model_config(config, "config.json"), options);
}

/// By graph, the modules that read parameters in it, without the layer's prefix.
std::map<std::int32_t, std::vector<std::string>> modules_in(const Model& model,
                                                            const Segment& segment) {
  const std::vector<std::int32_t> parts = parts_at_breaks(model, segment);
  std::map<std::int32_t, std::vector<std::string>> modules;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Op& op = segment.graph.ops()[i];
    if (op.weight == kNone) continue;
    const std::string& name = model.modules[static_cast<std::size_t>(op.module)].name;
    modules[parts[i]].push_back(name.substr(name.rfind('.') + 1));
  }
  return modules;
}

TEST(Breaks, OnlyLigersRotationBreaksLayers) {
  EXPECT_TRUE(breaks_in_layers(qwen3(true)));
  EXPECT_FALSE(breaks_in_layers(qwen3(false)));
}

// As the wrappers of PyTorch 2.11 are: the norm before attention; projections with the norms of
// heads; attention with its output; the rest.
TEST(Breaks, LayersFallIntoFourGraphs) {
  const Model model = qwen3(true);
  for (const Segment& segment : model.segments) {
    if (!segment.checkpointable) continue;
    auto modules = modules_in(model, segment);
    EXPECT_EQ(modules[0], (std::vector<std::string>{"input_layernorm"}));
    EXPECT_EQ(modules[1],
              (std::vector<std::string>{"q_proj", "q_norm", "k_proj", "k_norm", "v_proj"}));
    EXPECT_EQ(modules[2], (std::vector<std::string>{"o_proj"}));
    EXPECT_EQ(modules[3], (std::vector<std::string>{"post_attention_layernorm", "gate_proj",
                                                    "up_proj", "down_proj"}));
    EXPECT_EQ(modules.size(), 4u);
  }
}

// Adapters lie in the linears that they belong to, and the sum with what those make is theirs.
TEST(Breaks, AdaptersStayWithTheirLinears) {
  const Json config = Json::parse(R"({"model_type": "qwen3", "num_attention_heads": 16,
                                      "num_key_value_heads": 8, "hidden_size": 1024,
                                      "intermediate_size": 3072, "vocab_size": 32000,
                                      "num_hidden_layers": 2})");
  BuildOptions options;
  options.requested.patches = true;
  options.lora = Lora{};
  options.lora->targets = {"q_proj", "k_proj", "v_proj", "o_proj", "down_proj"};
  const Model model = build_model(load_model_config(config, "config.json"), options);
  for (const Segment& segment : model.segments) {
    if (!segment.checkpointable) continue;
    auto modules = modules_in(model, segment);
    EXPECT_EQ(modules[0], (std::vector<std::string>{"input_layernorm"}));
    EXPECT_EQ(modules[2], (std::vector<std::string>{"o_proj", "lora_A", "lora_B"}));
    EXPECT_EQ(modules.size(), 4u);
    // The sum of the branch, behind lora_B of o_proj, is in the graph of attention; the residual's
    // is not.
    const std::vector<std::int32_t> parts = parts_at_breaks(model, segment);
    const std::vector<Op>& ops = segment.graph.ops();
    std::int64_t sums = 0;
    for (std::size_t i = 0; i < ops.size(); ++i)
      sums += ops[i].kind == OpKind::add && parts[i] == 2;
    EXPECT_EQ(sums, 1);
  }
}

TEST(Breaks, TheLossIsOutsideAndEmbeddingsAreEager) {
  const Model model = qwen3(true);
  EXPECT_TRUE(parts_at_breaks(model, model.segments.front()).empty());
  auto modules = modules_in(model, model.segments.back());
  EXPECT_EQ(modules[0], (std::vector<std::string>{"norm"}));
  EXPECT_EQ(modules[kNone], (std::vector<std::string>{"lm_head"}));
}

// LLM.int8(): linears are in no graph, their adapters and the two sides of the gate in one each.
TEST(Breaks, LinearsInEightBitsAreOutside) {
  const Json config = Json::parse(R"({"model_type": "qwen3", "num_attention_heads": 16,
                                      "num_key_value_heads": 8, "hidden_size": 1024,
                                      "intermediate_size": 3072, "vocab_size": 32000,
                                      "num_hidden_layers": 2})");
  BuildOptions options;
  options.lora = Lora{};
  options.lora->targets = {"q_proj"};
  options.lora->base = Quantization::int8;
  const Model model = build_model(load_model_config(config, "config.json"), options);
  EXPECT_TRUE(breaks_in_layers(model));
  EXPECT_TRUE(parts_at_breaks(model, model.segments.front()).empty());
  EXPECT_EQ(modules_in(model, model.segments.back()).size(), 1u);
  for (const Segment& segment : model.segments) {
    if (!segment.checkpointable) continue;
    auto modules = modules_in(model, segment);
    EXPECT_EQ(modules[kNone].size(), 7u);
    EXPECT_EQ(modules[0], (std::vector<std::string>{"input_layernorm"}));
    EXPECT_EQ(modules[1], (std::vector<std::string>{"lora_A", "lora_B"}));
    EXPECT_EQ(modules[2], (std::vector<std::string>{"q_norm"}));
    const std::vector<std::int32_t> parts = parts_at_breaks(model, segment);
    const std::vector<Op>& ops = segment.graph.ops();
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
      if (ops[i].kind != OpKind::silu) continue;
      EXPECT_EQ(parts[i + 1], kNone);
    }
  }
}

// FSDP2: a block is a graph, and so is what follows the loop, where no unit ends in it.
TEST(Breaks, BlocksAreGraphs) {
  const Model model = qwen3(false);
  EXPECT_TRUE(parts_at_blocks(model, model.segments.front(), true).empty());
  for (const Segment& segment : model.segments) {
    if (!segment.checkpointable) continue;
    const std::vector<std::int32_t> parts = parts_at_blocks(model, segment, true);
    EXPECT_EQ(std::set<std::int32_t>(parts.begin(), parts.end()).size(), 1u);
    EXPECT_EQ(parts.size(), segment.graph.ops().size());
  }
  const auto graphs = [&](bool apart) {
    const std::vector<std::int32_t> parts = parts_at_blocks(model, model.segments.back(), apart);
    return std::set<std::int32_t>(parts.begin(), parts.end()).size();
  };
  EXPECT_EQ(graphs(false), 1u);
  EXPECT_EQ(graphs(true), 3u);  // the norm, the head, the loss
}

// Hooks around modules: a linear is a graph by itself, and the two sides of a gate are two.
TEST(Breaks, ModulesAreGraphsOfTheirOwn) {
  const Model model = qwen3(false);
  for (const Segment& segment : model.segments) {
    if (!segment.checkpointable) continue;
    const std::vector<std::int32_t> parts = parts_at_modules(segment);
    const std::vector<Op>& ops = segment.graph.ops();
    std::map<std::int32_t, std::set<ModuleId>> modules;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (ops[i].module != kNone) modules[parts[i]].insert(ops[i].module);
      if (ops[i].kind != OpKind::silu) continue;
      EXPECT_NE(parts[i - 1], parts[i]);
      EXPECT_NE(parts[i + 1], parts[i]);
    }
    EXPECT_EQ(modules.size(), 11u);  // seven linears and four norms
    for (const auto& [part, in] : modules) EXPECT_EQ(in.size(), 1u);
  }
}

}  // namespace
}  // namespace shardplan::compiled
