// The `parallel` of a job: what its degrees mean, and what is said of those that cannot be.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::parallel_job_test {
namespace {

using testing::HasSubstr;

Json base() {
  return Json::parse(R"({"model": "llama-2-7b", "cluster": "2x8xA100-80GB",
      "framework": "megatron", "workload": {"gradient_accumulation": 8}})");
}

Job load(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job = base();
  job.merge_patch(Json::parse(patch));
  return load_job(job, "job.json", {&hardware, ""});
}

std::string error(const std::string& patch) {
  return error_text([&] { load(patch); });
}

TEST(Parallel, DataIsWhatTheOtherDegreesLeave) {
  const Job job = load(R"({"parallel": {"tensor": 4, "pipeline": 2}})");
  EXPECT_EQ(job.plan.data_ranks(), 2);
  EXPECT_TRUE(job.plan.parallel.sequence_parallel);
  EXPECT_EQ(load("{}").plan.data_ranks(), 16);
  EXPECT_EQ(load(R"({"parallel": {"tensor": 4, "data": 4}})").plan.parallel.tensor, 4);
}

TEST(Parallel, ChunksAreInterleavedUnlessTheJobSaysOtherwise) {
  const Job job = load(R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2}})");
  EXPECT_EQ(job.plan.parallel.schedule, PipelineSchedule::interleaved);
}

TEST(Parallel, DeepSpeedTakesItsDegreesFromTheConfig) {
  const std::string message = error(R"({"framework": {"name": "deepspeed",
      "ds_config": {"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 2}}},
      "parallel": {"tensor": 4}})");
  EXPECT_THAT(message, HasSubstr("parallel.tensor: 4 here, but tensor_parallel/autotp_size"));
}

struct BadCase {
  const char* patch;
  std::vector<std::string> says;
};

TEST(Parallel, WhatCannotBeIsNamedWithTheNearestThatCan) {
  const std::vector<BadCase> bad = {
      {R"({"parallel": {"data": 3, "tensor": 4}})", {"parallel.data", "12", "16 GPUs", "data = 4"}},
      {R"({"parallel": {"tensor": 3}})", {"parallel.tensor: 3 does not divide the 16 GPUs", "2"}},
      {R"({"parallel": {"tensor": 8, "pipeline": 4}})", {"parallel.", "multiply to 32", "16 GPUs"}},
      {R"({"model": "gpt2", "parallel": {"tensor": 8}})",
       {"parallel.tensor: 8 does not divide the 12 attention heads", "expected 4"}},
      {R"({"model": "gpt2", "parallel": {"pipeline": 8}})",
       {"parallel.pipeline: 8 stages do not divide the 12 blocks", "expected 4"}},
      {R"({"parallel": {"pipeline": 4, "virtual_pipeline": 3}})",
       {"parallel.virtual_pipeline: 12 stages do not divide the 32 blocks", "expected 2"}},
      {R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2},
           "workload": {"gradient_accumulation": 6}})",
       {"parallel.virtual_pipeline", "4 at a time", "gradient_accumulation 8"}},
      {R"({"parallel": {"expert": 2}})", {"parallel.expert: a dense model has no experts"}},
      {R"({"model": "mixtral-8x7b", "parallel": {"expert": 16}})",
       {"parallel.expert: 16 does not divide the 8 experts", "expected 8"}},
      {R"({"parallel": {"context": 16}, "workload": {"sequence_length": 1000}})",
       {"parallel.context: 32 does not divide the 1000 tokens", "expected 4"}},
      {R"({"parallel": {"sequence_parallel": true}})",
       {"parallel.sequence_parallel", "tensor degree is 1"}},
      {R"({"parallel": {"pipeline": 2, "stage_layers": [16, 15]}})",
       {"parallel.stage_layers: 2 stages with 31 blocks", "2 stages with 32 blocks"}},
      {R"({"model": "bart-base", "parallel": {"pipeline": 2}})",
       {"parallel.pipeline", "an encoder and a decoder"}},
      {R"({"framework": "ddp", "parallel": {"tensor": 2}})",
       {"parallel.tensor: ddp has no degree of this kind", "or framework"}},
      {R"({"framework": {"name": "deepspeed", "zero_stage": 2}, "parallel": {"pipeline": 2}})",
       {"stage", "0 or 1"}},
      {R"({"framework": {"name": "deepspeed", "zero_stage": 1},
           "parallel": {"pipeline": 2, "virtual_pipeline": 2}})",
       {"parallel.virtual_pipeline: deepspeed has no degree of this kind", "megatron"}},
      {R"({"parallel": {"tensor": 0}})", {"parallel.tensor: found 0"}},
      {R"({"parallel": {"tensr": 2}})", {"tensr", "did you mean 'tensor'"}},
      {R"({"framework": {"name": "megatron", "overlap_grad_reduce": false,
           "overlap_param_gather": true}})",
       {"framework.overlap_param_gather"}},
      {R"({"framework": {"name": "megatron", "transformer_impl": "local",
           "tp_comm_overlap": true}})",
       {"framework.tp_comm_overlap", "Transformer Engine's"}},
      {R"({"framework": {"name": "megatron", "transformer_impl": "locl"}})", {"'local'"}},
      {R"({"precision": "bf16-autocast"})", {"Megatron-LM has no autocast"}},
  };
  for (const BadCase& b : bad) {
    const std::string message = error(b.patch);
    for (const std::string& part : b.says) EXPECT_THAT(message, HasSubstr(part)) << b.patch;
  }
}

}  // namespace
}  // namespace shardplan::parallel_job_test
