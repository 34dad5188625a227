// How many nodes of AOTAutograd's graph a block is: counted in the joint graphs that PyTorch 2.11
// partitions, of steps that tests/accuracy/measure/compiled_steps/saved_by_compile.py compiles.
#include "program/compiled/aten_order.h"

#include <gtest/gtest.h>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"

namespace shardplan::compiled::aten_order_test {
namespace {

const Regime kPure{.params = DType::bf16, .compute = DType::bf16};
const Regime kAutocast{.params = DType::f32, .compute = DType::bf16};
const Regime kFull{.params = DType::f32, .compute = DType::f32};

std::vector<std::int64_t> order_of(const std::string& type, int groups, const Regime& regime) {
  const Json config = Json::parse(R"({"model_type": ")" + type + R"(", "num_key_value_heads": )" +
                                  std::to_string(groups) + R"(, "hidden_size": 1024,
      "intermediate_size": 3072, "num_attention_heads": 16, "num_heads": 16, "head_dim": 64,
      "num_hidden_layers": 2, "vocab_size": 4096})");
  const Model model = build_model(load_model_config(config, "config.json"), {});
  const Sizes sizes{2, 512, 0};
  tape::GraphView view(model, model.segments[1].graph, regime, sizes, regime.params, true);
  const Trace trace(view, {.masked = true});
  std::vector<std::int64_t> order = aten_order(view, trace);
  if (order.size() < static_cast<std::size_t>(trace.first_backward)) order.clear();
  return order;
}

std::int64_t nodes_of(const std::string& type, int groups, const Regime& regime) {
  const std::vector<std::int64_t> order = order_of(type, groups, regime);
  return order.empty() ? 0 : order.back();
}

TEST(AtenOrder, CountsBlocksAsPyTorchTracesThem) {
  struct Block {
    const char* type;
    std::int64_t pure, autocast;
  };
  for (const Block& block :
       {Block{"llama", 82, 89}, Block{"mistral", 82, 89}, Block{"qwen2", 82, 92},
        Block{"qwen3", 98, 105}, Block{"exaone4", 98, 109}, Block{"granite", 84, 91},
        Block{"olmo2", 100, 109}, Block{"olmo3", 100, 109}, Block{"ernie4_5", 94, 99}}) {
    EXPECT_EQ(nodes_of(block.type, 4, kPure), block.pure) << block.type;
    EXPECT_EQ(nodes_of(block.type, 4, kAutocast), block.autocast) << block.type;
  }
  EXPECT_EQ(nodes_of("qwen3", 4, kFull), 88);
  EXPECT_EQ(nodes_of("olmo2", 16, kPure), 92) << "whose heads are not repeated";
  EXPECT_EQ(nodes_of("olmo2", 16, kAutocast), 101);
}

TEST(AtenOrder, CountsAttentionThatIsWrittenOutInFp32) {
  const Regime wrapped{.params = DType::bf16, .compute = DType::bf16, .wrapped = true};
  EXPECT_EQ(nodes_of("gpt_neo", 16, wrapped), 99);
  EXPECT_EQ(nodes_of("gpt_neo", 16, kAutocast), 101);
}

TEST(AtenOrder, SaysNothingOfOperationsThatWereNotCounted) {
  EXPECT_EQ(nodes_of("gpt2", 16, kPure), 0);
}

}  // namespace
}  // namespace shardplan::compiled::aten_order_test
