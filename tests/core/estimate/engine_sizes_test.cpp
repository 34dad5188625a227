// What engines choose by the GPU where a job does not say it.
#include <gtest/gtest.h>

#include "load/hardware.h"
#include "rollout/sizes.h"

namespace shardplan::engine_sizes_test {
namespace {

Gpu gpu(const char* name) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  return find_gpu(kHardware, name)->gpu;
}

RolloutEngine chosen(const EngineDescription& description, const Gpu& gpu, EngineCaller caller,
                     RolloutEngine engine = {}) {
  engine.engine = &description;
  engine.sequences = engine.batched_tokens = 0;
  engine.utilization = 0;
  choose_sizes(engine, gpu, caller);
  return engine;
}

// vLLM 0.25.1, engine/arg_utils.py, get_batch_defaults.
TEST(EngineSizes, VllmTakesMoreOnLargeGpusButTheA100) {
  const RolloutEngine library = chosen(kVllm, gpu("H100-SXM5-80GB"), EngineCaller::library);
  EXPECT_EQ(library.sequences, 1024);
  EXPECT_EQ(library.batched_tokens, 16384);
  EXPECT_EQ(library.utilization, kVllm.utilization);
  const RolloutEngine server = chosen(kVllm, gpu("H100-SXM5-80GB"), EngineCaller::server);
  EXPECT_EQ(server.sequences, 1024);
  EXPECT_EQ(server.batched_tokens, 8192);
  for (const char* small : {"A100-SXM4-80GB", "A100-PCIe-80GB", "L40S-48GB"}) {
    EXPECT_EQ(chosen(kVllm, gpu(small), EngineCaller::server).sequences, 256) << small;
    EXPECT_EQ(chosen(kVllm, gpu(small), EngineCaller::server).batched_tokens, 2048) << small;
    EXPECT_EQ(chosen(kVllm, gpu(small), EngineCaller::library).batched_tokens, 8192) << small;
  }
  const RolloutEngine program = chosen(kVllm, gpu("H100-SXM5-80GB"), EngineCaller::program);
  EXPECT_EQ(program.sequences, 128);
  EXPECT_EQ(program.batched_tokens, 2048);
}

TEST(EngineSizes, NoPassIsLargerThanItsSequencesAndNoneHasFewerTokensThanSequences) {
  RolloutEngine few;
  few.engine = &kVllm;
  few.sequences = 4;
  few.batched_tokens = 0;
  few.model_length = 512;
  choose_sizes(few, gpu("H100-SXM5-80GB"), EngineCaller::server);
  EXPECT_EQ(few.batched_tokens, 4 * 512);
  RolloutEngine narrow;
  narrow.engine = &kVllm;
  narrow.sequences = 0;
  narrow.batched_tokens = 300;
  choose_sizes(narrow, gpu("H100-SXM5-80GB"), EngineCaller::server);
  EXPECT_EQ(narrow.sequences, 300);
  EXPECT_EQ(narrow.batched_tokens, 300);
}

// SGLang 0.5, server_args.py: (81,559 - 512 - 1.5·8,192 - 2·256 - 128) / 81,559 MiB on an H100.
TEST(EngineSizes, SglangReservesByTheGpu) {
  const RolloutEngine large = chosen(kSglang, gpu("H100-SXM5-80GB"), EngineCaller::server);
  EXPECT_EQ(large.batched_tokens, 8192);
  EXPECT_EQ(large.graph_sequences, 256);
  EXPECT_DOUBLE_EQ(large.utilization, 0.835);
  const RolloutEngine small = chosen(kSglang, gpu("RTX4090-24GB"), EngineCaller::server);
  EXPECT_EQ(small.batched_tokens, 2048);
  EXPECT_EQ(small.graph_sequences, 24);
  RolloutEngine eight;
  eight.tensor_parallel = 8;
  EXPECT_EQ(chosen(kSglang, gpu("H100-SXM5-80GB"), EngineCaller::server, eight).graph_sequences,
            512);
}

TEST(EngineSizes, OthersTakeTheSameEverywhere) {
  for (const char* name : {"H100-SXM5-80GB", "L40S-48GB"}) {
    const RolloutEngine engine = chosen(kTensorRtLlm, gpu(name), EngineCaller::server);
    EXPECT_EQ(engine.sequences, 2048);
    EXPECT_EQ(engine.batched_tokens, 8192);
    EXPECT_EQ(engine.utilization, kTensorRtLlm.utilization);
  }
}

}  // namespace
}  // namespace shardplan::engine_sizes_test
