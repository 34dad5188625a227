// Megatron-LM's fine-grained activation offloading, read from its arguments.
#include <gmock/gmock.h>

#include "import_testing.h"

namespace shardplan::importing::megatron_sent_modules_test {
namespace {

const std::string kScript = R"(#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
  --ffn-hidden-size 11008 --num-attention-heads 32 --seq-length 4096 \
  --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 8 \
  --normalization RMSNorm --swiglu --disable-bias-linear --position-embedding-type rope \
  --untie-embeddings-and-output-weights --vocab-size 32000 --bf16 --use-distributed-optimizer )";

Json framework_of(const std::string& more) {
  return import_text(kScript + more + "\n").job.at("framework");
}

TEST(MegatronSentModules, AreReadFromArguments) {
  const Json said =
      framework_of("--fine-grained-activation-offloading --offload-modules core_attn attn_proj");
  EXPECT_EQ(said.at("offload_modules"), Json({"core_attn", "attn_proj"}));
  EXPECT_FALSE(said.contains("min_offloaded_tensor_size"));
  const Json least = framework_of(
      "--fine-grained-activation-offloading --offload-modules qkv_linear "
      "--min-offloaded-tensor-size 2048");
  EXPECT_EQ(least.at("offload_modules"), Json({"qkv_linear"}));
  EXPECT_EQ(least.at("min_offloaded_tensor_size"), 2048);
  EXPECT_FALSE(framework_of("--offload-modules core_attn").contains("offload_modules"));
}

/// Less would be said to be on the GPU than there is.
TEST(MegatronSentModules, StayOnTheGpuWhereAPartOfThemIsSent) {
  for (const char* more :
       {"--offload-modules core_attn --activation-offload-fraction 0.5",
        "--offload-modules core_attn --delta-offload-bytes-across-pp-ranks 1000000",
        "--offload-modules core_attn moe_act"}) {
    const Imported read =
        import_text(kScript + "--fine-grained-activation-offloading " + more + "\n");
    EXPECT_FALSE(read.job.at("framework").contains("offload_modules")) << more;
    EXPECT_TRUE(noted(read, Note::Kind::warning, "offload_modules")) << more;
  }
}

}  // namespace
}  // namespace shardplan::importing::megatron_sent_modules_test
