// Our own engine's runs that do some blocks again whole, or some products of each block, all
// predicted before they ran: bytes, and losses that do not depend on it.
#include <gtest/gtest.h>

#include <string>

#include "losses_alike.h"
#include "peak_errors.h"

namespace shardplan::native_policies_test {
namespace {

TEST(NativePolicies, OfSomeBlocksAllocateWhatWasPredictedToTheByte) {
  expect_to_the_byte("native_policies", 17);
}

TEST(NativePolicies, OfSomeProductsAllocateWhatWasPredictedToTheByte) {
  expect_to_the_byte("native_products_again", 19);
}

TEST(NativePolicies, OfRanksThatShareAGpuAllocateWhatWasPredictedToTheByte) {
  expect_to_the_byte("native_resident_ranks", 3);
}

/// In fp32 to the bit: cuDNN, whose last bits differ from run to run, is for 16 bits.
TEST(NativePolicies, LearnTheSameAsWithoutCheckpointing) {
  const auto gpt2 = [](const std::string& name) {
    return name.starts_with("h100-1x-native-z0-gpt2-fp32-b4-s1024-");
  };
  expect_losses_alike(gpt2, 1, 4, 0);
  const auto stages = [](const std::string& name) {
    return name.starts_with("h100-2x-native-z0-p2-1f1b-qwen3-0.6b-fp32-b1-s512-") &&
           name.ends_with("3-accumulation4");
  };
  expect_losses_alike(stages, 1, 2, 0);
}

}  // namespace
}  // namespace shardplan::native_policies_test
