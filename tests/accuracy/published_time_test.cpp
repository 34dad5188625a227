// Throughputs that papers print, against the time model on GPUs that it was not fitted to.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan {
namespace {

Json offload_job(const Json& row) {
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

/// ZeRO-Offload, table 3 with figures 8 and 10: 1B to 13B on 1 and 16 V100. The paper counts FLOPs
/// without recomputation.
TEST(PublishedTime, ZeroOffloadsThroughputWithinFifteenPerCent) {
  const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/zero_offload_speed.json");
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  double sum = 0;
  for (const Json& row : table.at("rows")) {
    const Job job = load_job(offload_job(row), "published", {&hardware, ""});
    const Estimate e = estimate(job.model, job.plan, calibration, ReservedMemory::ratio);
    const double peak = *job.plan.cluster.gpu.peak[PeakRate::fp16] / 1e12;
    const double error = e.time.mfu * peak / row[5].get<double>() - 1;
    EXPECT_LT(std::abs(error), 0.35) << row.dump();
    RecordProperty(row[0].get<std::string>() + " on " + std::to_string(row[4].get<int>()),
                   std::to_string(error));
    sum += std::abs(error);
  }
  const double mean = sum / static_cast<double>(table.at("rows").size());
  RecordProperty("mean", std::to_string(mean));
  EXPECT_LE(mean, 0.15);
}

Json llmq_job(const Json& row) {
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

/// llmq, a trainer in C++ and CUDA like the native engine, on GPUs of four other kinds: shares of
/// their datasheets that were fitted on one of a fifth.
TEST(PublishedTime, LlmqsThroughputWithinFifteenPerCent) {
  const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/llmq_speed.json");
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  double sum = 0;
  for (const Json& row : table.at("rows")) {
    const Job job = load_job(llmq_job(row), "published", {&hardware, ""});
    const Estimate e = estimate(job.model, job.plan, calibration, ReservedMemory::ratio);
    const double error = e.time.tokens_per_second / row[6].get<double>() - 1;
    EXPECT_LT(std::abs(error), 0.35) << row.dump();
    RecordProperty(row[2].get<std::string>() + " on " + std::to_string(row[1].get<int>()) + " " +
                       row[0].get<std::string>() + ", micro-batch " +
                       std::to_string(row[3].get<int>()),
                   std::to_string(error));
    sum += std::abs(error);
  }
  const double mean = sum / static_cast<double>(table.at("rows").size());
  RecordProperty("mean", std::to_string(mean));
  EXPECT_LE(mean, 0.15);
}

}  // namespace
}  // namespace shardplan
