// Setting fields of a job, and the command line that says the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST(JobFields, WhatNoFlagSaysNeedsAFile) {
  const Json job = Json::parse(R"({"model": {"mlp": [4, 2]}, "cluster": "H100"})");
  EXPECT_EQ(command_line(job, ""), "shardplan estimate job.json");
  EXPECT_EQ(command_line(job, "my job's.json"), "shardplan estimate 'my job'\\''s.json'");
}

}  // namespace
}  // namespace shardplan
