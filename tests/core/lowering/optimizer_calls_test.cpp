// How many calls an optimizer that takes tensors one by one makes for each.
#include <gtest/gtest.h>

#include "lowering/optimizer_kernels.h"
#include "optimizers/registry.h"
#include "support/plan_testing.h"

namespace shardplan::optimizer_calls_test {
namespace {

std::int32_t calls(const std::vector<std::int64_t>& shape, std::string_view precision) {
  Parameter parameter;
  parameter.shape = shape;
  Plan plan = plan_of(FrameworkKind::single, precision, 1);
  plan.optimizer.kind = find_optimizer("adafactor_transformers");
  std::int32_t sum = 0;
  for (const Kernel& k :
       optimizer_kernels({{&parameter, 64, 1}}, plan.optimizer, plan.precision, Given::tensors))
    sum += k.calls;
  return sum;
}

/// On a CPU its step dispatches 29, 26, 19 and 16 operations; the other calls are casts that change
/// nothing and functions of Python around norms and squares.
TEST(OptimizerCalls, OfAdafactorAreFewerForVectorsAndIn32Bits) {
  EXPECT_EQ(calls({8, 8}, "bf16-pure"), 34);
  EXPECT_EQ(calls({8, 8}, "fp32"), 31);
  EXPECT_EQ(calls({64}, "bf16-pure"), 23);
  EXPECT_EQ(calls({64}, "fp32"), 20);
}

}  // namespace
}  // namespace shardplan::optimizer_calls_test
