// Jobs of the speeds that ZeRO-Offload's paper and llmq print (data/published), row by row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "json/document.h"

namespace shardplan {

inline Json offload_job(const Json& row) {
  const auto micro_batch = row[3].get<std::int64_t>(), gpus = row[4].get<std::int64_t>();
  const std::int64_t accumulation = std::max<std::int64_t>(1, 512 / (micro_batch * gpus));
  Json job;
  job["model"] = {{"model_type", "gpt2"}, {"n_layer", row[1]},
                  {"n_embd", row[2]},     {"n_head", row[2].get<std::int64_t>() / 128},
                  {"vocab_size", 50304},  {"n_positions", 1024}};
  job["cluster"] = {{"gpu", "V100-SXM3-32GB"}, {"gpus_per_node", gpus}, {"nodes", 1}};
  job["framework"] = {
      {"name", "deepspeed"},
      {"ds_config",
       {{"train_micro_batch_size_per_gpu", micro_batch},
        {"gradient_accumulation_steps", accumulation},
        {"fp16", {{"enabled", true}}},
        {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 1e-4}}}}},
        {"zero_optimization", {{"stage", 2}, {"offload_optimizer", {{"device", "cpu"}}}}}}}};
  job["workload"] = {{"micro_batch", micro_batch},
                     {"sequence_length", 1024},
                     {"gradient_accumulation", accumulation}};
  job["precision"] = "fp16-master";
  job["checkpointing"] = "full";
  job["attention"] = "eager";
  return job;
}

inline Json llmq_job(const Json& row) {
  Json job;
  job["model"] = row[2];
  job["cluster"] = {{"gpu", row[0]}, {"gpus_per_node", row[1]}, {"nodes", 1}};
  job["framework"] = {{"name", "native"}, {"zero_stage", row[1] == 1 ? 0 : 1}};
  job["workload"] = {
      {"micro_batch", row[3]}, {"sequence_length", 1024}, {"gradient_accumulation", row[4]}};
  job["precision"] = "bf16-pure";
  job["checkpointing"] = row[5];
  return job;
}

}  // namespace shardplan
