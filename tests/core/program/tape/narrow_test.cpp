// Kernels of linears that torchao casts operation by operation, as its own steps start them on a
// GPU.
#include <gtest/gtest.h>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/tape.h"

namespace shardplan::narrow_test {
namespace {

constexpr std::int32_t kLinears = 7;

TapeRun block(LinearRecipe linear) {
  const Json config = Json::parse(R"({"model_type": "llama", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
      "vocab_size": 128})");
  const Model model = build_model(load_model_config(config, "config.json"), {});
  const Regime regime{.params = DType::bf16, .compute = DType::bf16, .linear = linear};
  return run_tape(model, model.segments[1], regime, {2, 32, 0}, DType::bf16, TapeMode::keep);
}

/// Of numbers, or one for each row: scales, their inverses, ones.
std::int32_t on_scales(const std::vector<Kernel>& kernels) {
  std::int32_t sum = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.kind == KernelKind::elementwise && kernel.elements == 8) sum += kernel.calls;
  return sum;
}

// A cast: to fp64, the least, its inverse, a product, to fp32; by rows also a logarithm, its floor
// and an exponential. A product: the inverses of both scales.
TEST(Narrow, ScalesTakeKernelsOfTheirOwn) {
  EXPECT_EQ(on_scales(block(LinearRecipe::fp8_tensorwise).forward_kernels), kLinears * (2 * 5 + 2));
  EXPECT_EQ(on_scales(block(LinearRecipe::fp8_tensorwise).backward_kernels),
            kLinears * (4 * 5 + 2 * 2));
  EXPECT_EQ(on_scales(block(LinearRecipe::fp8_rowwise).forward_kernels), kLinears * (2 * 8 + 2));
}

// Both products of the backward pass have ones in the scales' place.
TEST(Narrow, ProductsWithoutFastSumsAreScaledBehindThem) {
  EXPECT_EQ(on_scales(block(LinearRecipe::fp8_rowwise).backward_kernels),
            kLinears * (4 * 8 + 2 * (2 + 2)));
}

TEST(Narrow, OtherLinearsHaveNoScales) {
  EXPECT_EQ(on_scales(block(LinearRecipe::computed).forward_kernels), 0);
}

}  // namespace
}  // namespace shardplan::narrow_test
