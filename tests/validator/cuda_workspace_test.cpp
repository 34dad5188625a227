// What the CUDA back end asks of workspace is known without a GPU: dry runs count on it.
#include <gtest/gtest.h>

#include "device/cuda.h"

namespace shardplan::validator {
namespace {

StepShapes small_decoder() {
  StepShapes shapes;
  shapes.heads = {
      .batch = 4, .sequence = 1024, .query_heads = 12, .key_value_heads = 12, .head_dim = 64};
  shapes.rows = shapes.heads.rows();
  shapes.hidden = 768;
  shapes.inner = 3072;
  shapes.padded_vocabulary = 50304;
  return shapes;
}

TEST(CudaWorkspace, IsWholeAlignedBlocks) {
  EXPECT_EQ(cuda_workspace_bytes(small_decoder()) % 512, 0);
}

TEST(CudaWorkspace, HasRoomForMatrixProductsWhateverTheShapes) {
  EXPECT_GE(cuda_workspace_bytes(StepShapes{}), std::int64_t{32} << 20);
}

TEST(CudaWorkspace, GrowsWithTheTokensOfAMicroBatch) {
  StepShapes larger = small_decoder();
  larger.heads.batch *= 16;
  larger.rows *= 16;
  EXPECT_GT(cuda_workspace_bytes(larger), cuda_workspace_bytes(small_decoder()));
}

TEST(CudaWorkspace, DoesNotDependOnLayersOrParameters) {
  StepShapes larger = small_decoder();
  larger.largest_unit = std::int64_t{1} << 34;
  EXPECT_EQ(cuda_workspace_bytes(larger), cuda_workspace_bytes(small_decoder()));
}

}  // namespace
}  // namespace shardplan::validator
