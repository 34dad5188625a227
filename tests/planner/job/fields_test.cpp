// Setting fields of a job, and the command line that says the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/stored_format.h"
#include "job/fields.h"

namespace shardplan {
namespace {

TEST(JobFields, ATextBecomesAnObjectWhenAFieldInsideOfItIsSet) {
  Json job = Json::parse(R"({"cluster": "4xH100", "framework": "ddp"})");
  set_field(job, "/cluster/host_memory_bytes", 1024);
  EXPECT_EQ(job["cluster"].dump(), R"({"name":"4xH100","host_memory_bytes":1024})");
  EXPECT_EQ(field_of(job, "/framework/name"), Json("ddp"));
  EXPECT_EQ(field_of(job, "/framework/zero_stage"), std::nullopt);
}

TEST(JobFields, ATextOrTrueBecomesTheObjectItStandsFor) {
  Json job = Json::parse(R"({"checkpointing": "full", "precision": "fp32", "compile": true,
      "workload": {"models": {"critic": {"precision": "fp32"}}}})");
  EXPECT_EQ(field_of(job, "/checkpointing/policy"), Json("full"));
  set_field(job, "/checkpointing/offload", true);
  set_field(job, "/precision/linear", "fp8");
  set_field(job, "/compile/scope", "block");
  set_field(job, "/workload/models/critic/precision/linear", "fp8");
  EXPECT_EQ(job["checkpointing"].dump(), R"({"policy":"full","offload":true})");
  EXPECT_EQ(job["precision"].dump(), R"({"preset":"fp32","linear":"fp8"})");
  EXPECT_EQ(job["compile"].dump(), R"({"scope":"block"})");
  EXPECT_EQ(job["workload"].dump(),
            R"({"models":{"critic":{"precision":{"preset":"fp32","linear":"fp8"}}}})");
}

TEST(JobFields, NullTakesATextAwayWhereItStandsForTheField) {
  Json job = Json::parse(R"({"optimizer": "sgd", "workload":
      {"models": {"critic": {"precision": "fp32"}}}})");
  set_field(job, "/workload/models/critic/precision/preset", nullptr);
  set_field(job, "/optimizer/name", nullptr);
  EXPECT_EQ(job.dump(), R"({"workload":{"models":{"critic":{}}}})");
}

TEST(JobFields, NullTakesAFieldAway) {
  Json job = Json::parse(R"({"framework": {"name": "deepspeed", "zero_stage": 2}, "loss": "x"})");
  set_field(job, "/framework/zero_stage", nullptr);
  set_field(job, "/loss", nullptr);
  set_field(job, "/workload/micro_batch", nullptr);
  EXPECT_EQ(job.dump(), R"({"framework":{"name":"deepspeed"}})");
}

TEST(JobFields, ACommandLineSaysWhatTheJobSays) {
  const Json job = Json::parse(R"({"model": "7B", "cluster": "4x40GB", "checkpointing": "full",
      "workload": {"micro_batch": 2, "method": "lora", "lora": {"targets": ["q_proj", "v_proj"]}},
      "framework": {"name": "deepspeed", "zero_stage": 3}})");
  EXPECT_EQ(command_line(job, ""),
            "shardplan estimate --model 7B --cluster 4x40GB --framework deepspeed --zero-stage 3 "
            "--micro-batch 2 --method lora --lora-targets q_proj,v_proj --checkpointing full");
}

TEST(JobFields, ACommandLineSaysAPresetBesideWhatLinearsMultiplyIn) {
  const Json job = Json::parse(R"({"model": "7B", "cluster": "1xH100", "framework": "single",
      "compile": {"mode": "reduce-overhead"},
      "precision": {"preset": "bf16-pure", "linear": "fp8-rowwise"}})");
  EXPECT_EQ(command_line(job, ""),
            "shardplan estimate --model 7B --cluster 1xH100 --framework single --precision "
            "bf16-pure --linear fp8-rowwise --compile-mode reduce-overhead");
}

TEST(JobFields, YesLeavesAnObjectThatIsAYes) {
  Json job = Json::parse(R"({"compile": {"mode": "reduce-overhead"}})");
  set_field(job, "/compile", true);
  EXPECT_EQ(job["compile"].dump(), R"({"mode":"reduce-overhead"})");
  set_field(job, "/compile", false);
  EXPECT_EQ(job["compile"].dump(), "false");
}

TEST(JobFields, WhatNoFlagSaysNeedsAFile) {
  const Json job = Json::parse(R"({"model": {"mlp": [4, 2]}, "cluster": "H100"})");
  EXPECT_EQ(command_line(job, ""), "shardplan estimate job.json");
  EXPECT_EQ(command_line(job, "my job's.json"), "shardplan estimate 'my job'\\''s.json'");
}

TEST(JobFields, HelpNamesEveryFormatThatTheFieldTakes) {
  const std::vector<std::pair<std::string_view, std::vector<std::string>>> taken{
      {"--reduce-dtype", dtype_names(kTrainingType)},
      {"--grad-reduce-dtype", dtype_names(kTrainingType)},
      {"--quantization", quantization_names(kWeightStore)}};
  for (const auto& [flag, names] : taken) {
    for (const JobField& field : job_fields()) {
      if (field.flag != flag) continue;
      for (const std::string& name : names)
        EXPECT_NE(field.help.find(name), std::string_view::npos) << flag << " " << name;
    }
  }
}

TEST(JobFields, HelpListsEveryChoice) {
  const auto help_of = [](std::string_view flag) -> std::string {
    for (const JobField& field : job_fields())
      if (field.flag == flag) return field.help;
    return "no such flag";
  };
  EXPECT_EQ(help_of("--reduce-dtype"),
            "FSDP2, FSDP1: type in which gradients are reduced: fp32, bf16 or fp16");
  EXPECT_EQ(help_of("--grad-reduce-dtype"),
            "Megatron: type of the gradient buffers: fp32, bf16 or fp16");
  EXPECT_EQ(help_of("--zero-stage"), "DeepSpeed, native: ZeRO stage, 0 to 3");
}

}  // namespace
}  // namespace shardplan
