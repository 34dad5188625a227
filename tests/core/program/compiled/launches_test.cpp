// How many kernels Inductor makes of a block whose linears are torchao's in fp8: as its own
// wrappers start them (tests/accuracy/measure/compiled/combined.json, of three blocks).
#include <gtest/gtest.h>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/compiled/run.h"

namespace shardplan::launches_test {
namespace {

constexpr std::int64_t kTokens = 4 * 2048, kHidden = 2048, kInner = 8192;

TapeRun block(LinearRecipe linear) {
  const Json config = Json::parse(R"({"model_type": "llama", "hidden_size": 2048,
      "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8,
      "head_dim": 64, "num_hidden_layers": 1, "vocab_size": 4096})");
  const Model model = build_model(load_model_config(config, "config.json"), {});
  const Regime regime{.params = DType::bf16, .compute = DType::bf16, .linear = linear};
  return run_compiled(model, model.segments[1], regime, {4, 2048, 0}, DType::bf16, TapeMode::keep,
                      {});
}

bool is_fused(const Kernel& kernel) {
  return kernel.kind == KernelKind::triton_pointwise || kernel.kind == KernelKind::triton_reduction;
}

std::int32_t fused(const std::vector<Kernel>& kernels) {
  std::int32_t count = 0;
  for (const Kernel& kernel : kernels) count += is_fused(kernel) ? kernel.calls : 0;
  return count;
}

// A tensor's largest value is known only behind two kernels, and the cast is a third.
TEST(Launches, OfTensorsScalesAreThreeForEachOperand) {
  const TapeRun run = block(LinearRecipe::fp8_tensorwise);
  EXPECT_EQ(fused(run.forward_kernels), 108 / 3);
  EXPECT_NEAR(fused(run.backward_kernels), 108 / 3, 5);
}

// A row's is found and used by one kernel, a column's as a tensor's, and each weight's gradient is
// scaled behind its product.
TEST(Launches, OfRowsScalesAreOneForwardAndMoreBackward) {
  const TapeRun run = block(LinearRecipe::fp8_rowwise);
  EXPECT_EQ(fused(run.forward_kernels), 42 / 3);
  EXPECT_NEAR(fused(run.backward_kernels), 201 / 3, 5);
}

// Inductor divides for each element where a gradient is cast by columns in the kernel of its rows.
TEST(Launches, GradientsAreCastInBothOrdersByOneKernel) {
  double divided = 0;
  for (const Kernel& kernel : block(LinearRecipe::fp8_rowwise).backward_kernels)
    if (kernel.kind == KernelKind::triton_reduction && kernel.elements > 2 * kTokens * kInner)
      divided += 1;
  EXPECT_EQ(divided, 2) << "of gate and up, the widest";
  for (const Kernel& kernel : block(LinearRecipe::fp8_tensorwise).backward_kernels)
    EXPECT_LE(kernel.elements, kTokens * kInner);
}

// One kernel reads both results and their gradient, and casts the product of the gate in one order
// and two gradients in both: five copies that are there at once.
TEST(Launches, AGatesNarrowCopiesAreMadeTogether) {
  std::int32_t together = 0;
  for (const Kernel& kernel : block(LinearRecipe::fp8_tensorwise).backward_kernels)
    if (is_fused(kernel) && kernel.bytes >= (3 * 2 + 5) * kTokens * kInner) ++together;
  EXPECT_EQ(together, 1);
}

// Two bytes are read and written, and the divisions in fp64 take as long as three elements.
TEST(Launches, AWeightsGradientIsScaledInItsPlace) {
  std::int32_t scaled = 0;
  for (const Kernel& kernel : block(LinearRecipe::fp8_rowwise).backward_kernels)
    if (is_fused(kernel) && kernel.bytes == 2 * 2 * kHidden * kInner)
      scaled += kernel.elements == 4 * kHidden * kInner ? 1 : 0;
  EXPECT_EQ(scaled, 3) << "gate, up and down";
}

}  // namespace
}  // namespace shardplan::launches_test
