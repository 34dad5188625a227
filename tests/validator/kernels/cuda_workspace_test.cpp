// What the CUDA back end asks of workspace is known without a GPU: dry runs and predictions count
// on it.
#include <gtest/gtest.h>

#include "kernels/cuda.h"
#include "kernels/cuda/attention.h"
#include "validator/documented_workspace.h"

namespace shardplan::validator {
namespace {

StepShapes decoder(DType dtype, const Heads& heads, std::int64_t hidden) {
  StepShapes shapes{.dtype = dtype, .heads = heads};
  shapes.rows = heads.rows();
  shapes.hidden = hidden;
  shapes.inner = 4 * hidden;
  shapes.padded_vocabulary = 50304;
  return shapes;
}

constexpr Heads kGpt2{
    .batch = 64, .sequence = 1024, .query_heads = 12, .key_value_heads = 12, .head_dim = 64};
constexpr Heads kGrouped{
    .batch = 4, .sequence = 4096, .query_heads = 32, .key_value_heads = 8, .head_dim = 64};
constexpr Heads kSmall{
    .batch = 1, .sequence = 77, .query_heads = 4, .key_value_heads = 2, .head_dim = 12};

TEST(CudaWorkspace, is_what_the_documentation_says) {
  if (cuda::cudnn_attention_workspace(DType::bf16, kGpt2) == 0)
    GTEST_SKIP() << "built without cuDNN, which asks for most of it";
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Heads& heads : {kGpt2, kGrouped, kSmall})
      for (const std::int64_t hidden : {std::int64_t{48}, std::int64_t{1600}, std::int64_t{8192}}) {
        const StepShapes shapes = decoder(dtype, heads, hidden);
        EXPECT_EQ(cuda_workspace_bytes(shapes), documented_cuda_workspace(shapes))
            << shardplan::name_of(dtype) << ", " << heads.rows() << " × " << hidden;
      }
}

TEST(CudaWorkspace, of_matrix_products_suffices_without_attention) {
  StepShapes perceptron{.dtype = DType::f32, .rows = 4096, .hidden = 784};
  perceptron.inner = 784;
  perceptron.padded_vocabulary = 16;
  EXPECT_EQ(cuda_workspace_bytes(perceptron), std::int64_t{32} << 20);
}

TEST(CudaWorkspace, does_not_depend_on_the_size_of_units) {
  StepShapes larger = decoder(DType::bf16, kGpt2, 768);
  const std::int64_t before = cuda_workspace_bytes(larger);
  larger.largest_unit = std::int64_t{1} << 34;
  EXPECT_EQ(cuda_workspace_bytes(larger), before);
}

}  // namespace
}  // namespace shardplan::validator
