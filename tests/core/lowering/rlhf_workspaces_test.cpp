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

}  // namespace
}  // namespace shardplan::rlhf_workspaces_test
