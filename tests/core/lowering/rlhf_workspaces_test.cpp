// Workspaces of libraries in an iteration of several models: each is made once, so that the blocks
// that are asked for are the live tensors.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/rlhf/lower.h"
#include "simulator/memory.h"
#include "simulator/reserved.h"
#include "support/program_testing.h"

namespace shardplan::rlhf_workspaces_test {
namespace {

Program program_of(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json json = parse_json(R"({"model": "qwen2.5-0.5b", "cluster": "2xH100-80GB",
      "framework": {"name": "deepspeed", "zero_stage": 3},
      "workload": {"kind": "rlhf", "algorithm": "ppo", "micro_batch": 2, "prompt_length": 128,
                   "new_tokens": 128}})",
                         "job");
  json.merge_patch(parse_json(patch, "patch"));
  return lower_rlhf(*load_job(json, "job", {.hardware = &hardware, .directory = ""}).rlhf);
}

void expect_blocks_of_live_tensors(const std::string& patch) {
  const Program program = program_of(patch);
  EXPECT_EQ(simulate_reserved(program).requested, simulate_memory(program).peak) << patch;
}

/// Two models that train: the first step of each asks for them.
TEST(RlhfWorkspaces, AreNotMadeByEachModelThatTrains) {
  expect_blocks_of_live_tensors("{}");
}

/// The reference makes one, and autograd's is there from the start.
TEST(RlhfWorkspaces, AreThereWhereNoFirstStepAsksForThem) {
  expect_blocks_of_live_tensors(R"({"trainer": "openrlhf",
      "workload": {"algorithm": "grpo",
                   "rollout": {"gpu_memory_utilization": 0.4, "sleep_level": 1}}})");
}

/// Megatron-LM's optimizer has fp32 gradients that the next step lets go: they are live meanwhile,
/// and no library's workspace.
TEST(RlhfWorkspaces, AreNotGradientsThatAnOptimizerHasLeft) {
  const Program program = program_of(R"({
      "framework": {"name": "megatron", "grad_reduce_dtype": "bf16", "zero_stage": null},
      "workload": {"algorithm": "dpo", "sequence_length": 512, "prompt_length": null,
                   "new_tokens": null}})");
  for (const std::int64_t least : play(program).least) EXPECT_GE(least, 0);
  const Program on_host = program_of(R"({
      "framework": {"name": "megatron", "grad_reduce_dtype": "bf16", "zero_stage": null},
      "workload": {"algorithm": "grpo", "models": {"actor": {"idle": "host"}},
                   "rollout": {"gpu_memory_utilization": 0.4, "sleep_level": 1}}})");
  for (const std::int64_t least : play(on_host).least) EXPECT_GE(least, 0);
}

/// Stages hold what they received while another model, with other chunks, runs its own: what each
/// lets go is what it was given.
TEST(RlhfWorkspaces, StagesOfTwoModelsHoldTensorsOfTheirOwn) {
  const Program program = program_of(R"({
      "framework": {"name": "megatron", "zero_stage": null, "overlap_grad_reduce": false},
      "parallel": {"pipeline": 2},
      "workload": {"gradient_accumulation": 4, "generation_batch": 16,
                   "rollout": {"gpu_memory_utilization": 0.4, "sleep_level": 1},
                   "models": {"critic": {"parallel": {"pipeline": 2, "virtual_pipeline": 2}}}}})");
  EXPECT_GE(simulate_reserved(program).requested, simulate_memory(program).peak);
  for (const std::int64_t least : play(program).least) EXPECT_GE(least, 0);
}

}  // namespace
}  // namespace shardplan::rlhf_workspaces_test
