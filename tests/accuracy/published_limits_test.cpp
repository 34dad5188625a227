// Where training with ZeRO ends (data/published/zero_limits.json): the largest models that papers
// trained, what a step of one took, and jobs that ran out of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/plan_testing.h"

namespace shardplan::published_limits_test {
namespace {

const Json& tables() {
  static const Json json = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/zero_limits.json");
  return json;
}

struct ZeroRun {
  std::string gpu = "V100-SXM3-32GB";
  std::int64_t gpus = 1, nodes = 1;
  std::int64_t layers = 1, hidden = 0, heads = 0, sequence = 1024, vocabulary = 50'304;
  std::int64_t stage = 0, micro_batch = 1;
  std::string optimizer = "none", parameters = "none";
  bool trainer = false;  ///< HF Trainer's sizes for "auto"
};

Json zero_of(const ZeroRun& run) {
  Json zero{{"stage", run.stage}};
  if (run.optimizer != "none") zero["offload_optimizer"] = {{"device", run.optimizer}};
  if (run.parameters != "none") zero["offload_param"] = {{"device", run.parameters}};
  if (run.trainer)
    for (const auto* key : {"reduce_bucket_size", "stage3_prefetch_bucket_size",
                            "stage3_param_persistence_threshold"})
      zero[key] = "auto";
  return zero;
}

Job job_of(const ZeroRun& run) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job;
  job["model"] = {{"model_type", "gpt2"},         {"n_layer", run.layers},
                  {"n_embd", run.hidden},         {"n_head", run.heads},
                  {"vocab_size", run.vocabulary}, {"n_positions", run.sequence}};
  job["cluster"] = {{"gpu", run.gpu},
                    {"gpus_per_node", run.gpus},
                    {"nodes", run.nodes},
                    {"host_memory_bytes", 1'500'000'000'000}};
  job["framework"] = {{"name", "deepspeed"},
                      {"ds_config",
                       {{"train_micro_batch_size_per_gpu", run.micro_batch},
                        {"gradient_accumulation_steps", 1},
                        {"fp16", {{"enabled", true}}},
                        {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 1e-4}}}}},
                        {"zero_optimization", zero_of(run)}}}};
  job["workload"] = {{"micro_batch", run.micro_batch},
                     {"sequence_length", run.sequence},
                     {"gradient_accumulation", 1}};
  job["checkpointing"] = "full";
  job["attention"] = "eager";
  return load_job(job, "published", {&hardware, ""});
}

Estimate estimate_of(const ZeroRun& run) {
  static const Calibration calibration = load_calibration();
  const Job job = job_of(run);
  return estimate(job.model, job.plan, calibration);
}

/// By the point estimates: papers push a GPU to its last byte.
bool runs(const Estimate& e) {
  return probably_fits(e.verdict);
}

/// Parameters of the deepest network that runs.
double largest(ZeroRun run) {
  std::int64_t good = 0, bad = 1024;
  while (bad - good > 1) {
    run.layers = good + (bad - good) / 2;
    (runs(estimate_of(run)) ? good : bad) = run.layers;
  }
  run.layers = good;
  return static_cast<double>(job_of(run).model.parameter_count());
}

TEST(PublishedLimits, TheLargestModelsWithinFifteenPerCent) {
  double sum = 0;
  const Json& rows = tables().at("largest").at("rows");
  for (const Json& row : rows) {
    ZeroRun run;
    run.gpus = row[1];
    run.hidden = row[2];
    run.heads = row[3];
    run.micro_batch = row[4];
    run.stage = row[5];
    run.optimizer = row[6];
    run.parameters = row[7];
    const double published = row[8].get<double>();
    const double error = largest(run) / published - 1;
    // ZeRO-2 on a node's 16 GPUs is 8B here and 10B in ZeRO-Infinity's paper; 9.3B are predicted,
    // with contexts and communicators as today's libraries have them.
    const bool papers_differ = run.gpus == 16 && run.stage == 2 && run.optimizer == "none";
    EXPECT_LE(std::abs(error), papers_differ ? 0.17 : 0.15) << row.dump() << ": " << error;
    RecordProperty(row.dump(), std::to_string(error));
    sum += std::abs(error);
  }
  EXPECT_LE(sum / static_cast<double>(rows.size()), 0.105);
}

TEST(PublishedLimits, TheStepOfZeroOffloadAndItsPartsWithinFifteenPerCent) {
  const Json& row = tables().at("breakdown");
  const Estimate e = estimate_of({.layers = 50,
                                  .hidden = 4096,
                                  .heads = 32,
                                  .stage = 2,
                                  .micro_batch = 10,
                                  .optimizer = "cpu"});
  const auto expect_near = [&](double predicted, const char* key) {
    const double published = row.at(key).get<double>();
    EXPECT_NEAR(predicted / published, 1, 0.15) << key << ": " << predicted;
    RecordProperty(key, std::to_string(predicted / published - 1));
  };
  const TimeEstimate& t = e.time;
  expect_near(t.step_seconds, "step_seconds");
  expect_near(t.optimizer_seconds, "optimizer_seconds");
  expect_near(t.step_seconds - t.optimizer_seconds, "forward_and_backward_seconds");
  expect_near(static_cast<double>(e.device.point) / (1024.0 * 1024.0), "gpu_mib");
  expect_near(static_cast<double>(e.host_per_node.total()) / 1e9, "host_gb");
}

TEST(PublishedLimits, WhatRanOutOfMemoryDoesNotFit) {
  for (const Json& row : tables().at("out_of_memory").at("rows")) {
    ZeroRun run;
    run.gpu = row[1];
    run.gpus = row[2];
    run.nodes = row[3];
    run.layers = row[4];
    run.hidden = row[5];
    run.heads = row[6];
    run.sequence = row[7];
    run.vocabulary = row[8];
    run.stage = row[9];
    run.optimizer = row[10];
    run.micro_batch = row[11];
    const Estimate e = estimate_of(run);
    EXPECT_EQ(e.verdict.gpu.fit, Fit::does_not_fit) << row.dump();
    // Of 529.6B on 560 GPUs live tensors alone are 97 % of the GPU since nothing is gathered ahead
    // of a tensor that is larger than max_live_parameters.
    EXPECT_GT(static_cast<double>(e.allocated.point), 0.96 * static_cast<double>(e.usable_bytes))
        << row.dump() << ": live tensors alone";
    EXPECT_GT(e.device.point, e.usable_bytes) << row.dump();
  }
}

/// Of the two that are missed, live tensors are within 15 % of the GPU
/// (docs/explanation/memory.md).
TEST(PublishedLimits, WhatRanOn64GpusFitsButForItsLargestBatches) {
  const Json& table = tables().at("ran");
  for (const Json& row : table.at("rows")) {
    ZeroRun run{.gpu = "V100-SXM2-32GB", .gpus = 4, .nodes = 16, .layers = 64, .hidden = 8192};
    run.heads = 32;
    run.vocabulary = 50'257;
    run.stage = 3;
    run.optimizer = row[0];
    run.parameters = row[1];
    run.micro_batch = row[2];
    run.trainer = true;
    const Estimate e = estimate_of(run);
    const Json& missed = table.at("missed");
    if (std::find(missed.begin(), missed.end(), row[2]) == missed.end())
      EXPECT_TRUE(runs(e)) << row.dump();
    else
      EXPECT_LT(static_cast<double>(e.allocated.point), 1.15 * static_cast<double>(e.usable_bytes));
  }
}

/// ZeRO's table 1 marks what fits a V100-32GB: model states alone.
TEST(PublishedLimits, StatesBeyondAV100DoNotFitIt) {
  const Json tables =
      read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/zero_tables.json").at("zero_table1");
  int beyond = 0;
  for (const Json& row : tables.at("rows"))
    for (int stage = 1; stage <= 3; ++stage) {
      if (row[static_cast<std::size_t>(stage) + 1].get<double>() < 32) continue;
      constexpr std::int64_t kTensors = 10'240;
      const auto each = static_cast<std::int64_t>(row[0].get<double>() / kTensors);
      Plan plan = zero_plan(stage, "fp16-master", row[1].get<std::int64_t>());
      plan.cluster.gpu = job_of({.layers = 1, .hidden = 64, .heads = 1}).plan.cluster.gpu;
      const Estimate e =
          estimate(equal_tensors(kTensors, each), plan, load_calibration(), ReservedMemory::ratio);
      EXPECT_EQ(e.verdict.gpu.fit, Fit::does_not_fit) << row.dump() << " stage " << stage;
      ++beyond;
    }
  EXPECT_EQ(beyond, 39);
}

}  // namespace
}  // namespace shardplan::published_limits_test
