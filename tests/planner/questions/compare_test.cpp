// A job of each kind beside other plans of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "load/calibration.h"
#include "load/hardware.h"
#include "parallel/problem.h"
#include "questions/compare.h"
#include "questions/estimate_job.h"
#include "questions/fixes.h"
#include "render/compare_text.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::Not;

Job job_of(const std::string& text) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  return load_job(parse_json(text, "job.json"), "job.json", context);
}

const Calibration& calibration() {
  static const Calibration loaded = load_calibration();
  return loaded;
}

std::vector<std::string> names_of(const std::vector<Alternative>& all) {
  std::vector<std::string> names;
  for (const Alternative& a : all) names.push_back(a.name);
  return names;
}

const Alternative& named(const std::vector<Alternative>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Alternative& a) { return a.name == name; });
  if (found == all.end()) throw std::out_of_range(name);
  return *found;
}

/// The comparison's row is what the job says when it is written out.
void expect_same(const Estimate& row, const std::string& job) {
  const Estimate written = estimate_job(job_of(job), calibration());
  EXPECT_EQ(row.device.point, written.device.point) << job;
  EXPECT_EQ(row.host_per_node.total(), written.host_per_node.total()) << job;
  EXPECT_DOUBLE_EQ(row.time.step_seconds, written.time.step_seconds) << job;
}

std::string megatron(const std::string& parallel, int accumulation) {
  return R"({"model": "llama-2-7b", "cluster": "4x8xH100", "framework": "megatron",
    "precision": "bf16-master", "parallel": )" +
         parallel + R"(, "workload": {"micro_batch": 1, "sequence_length": 2048,
    "gradient_accumulation": )" +
         std::to_string(accumulation) + "}}";
}

TEST(CompareDegrees, HalvesDoublesAndLeavesOutEachDegree) {
  const Job job = job_of(megatron(R"({"tensor": 4, "pipeline": 4})", 16));
  const std::vector<Alternative> all = compare_plans(job, calibration());
  EXPECT_EQ(names_of(all),
            (std::vector<std::string>{"as asked", "tensor 1 instead of 4", "tensor 2 instead of 4",
                                      "tensor 8 instead of 4", "pipeline 1 instead of 4",
                                      "pipeline 2 instead of 4", "pipeline 8 instead of 4"}));
  const std::int64_t batch = job.plan.samples_at_once() * job.plan.workload.gradient_accumulation;
  for (const Alternative& a : all)
    EXPECT_EQ(a.plan.samples_at_once() * a.plan.workload.gradient_accumulation, batch) << a.name;
  expect_same(named(all, "tensor 8 instead of 4").estimate,
              megatron(R"({"tensor": 8, "pipeline": 4})", 32));
  expect_same(named(all, "pipeline 1 instead of 4").estimate, megatron(R"({"tensor": 4})", 4));
}

/// What a comparison and the fixes show has to be what a job may ask for.
void expect_possible(const Job& job) {
  for (const Alternative& a : compare_plans(job, calibration()))
    EXPECT_FALSE(division_problem(job.model, a.plan)) << a.name;
  const Estimate now = estimate_job(job, calibration());
  for (const Fix& fix : find_fixes(job.model, job.plan, now, calibration())) {
    Plan plan = job.plan;
    for (const Change& change : fix.changes) change.apply(plan);
    EXPECT_FALSE(division_problem(job.model, plan)) << fix.changes.front().what;
    const double after = estimate(job.model, plan, calibration()).time.tokens_per_second;
    EXPECT_DOUBLE_EQ(fix.slowdown, now.time.tokens_per_second / after) << fix.changes.front().what;
  }
}

/// Without a batch an engine runs as many sequences as it has room for: no row asks for none.
TEST(CompareServing, ShowsFormatsAndGpusOfAnEngine) {
  const Job job = job_of(R"({"model": "llama-3.1-8b", "cluster": "4xH100", "workload":
    {"kind": "inference", "prompt_length": 2048, "new_tokens": 256,
     "engine": {"tensor_parallel": 2}}})");
  const std::vector<Alternative> all = compare_plans(job, calibration());
  EXPECT_THAT(names_of(all), Contains("an engine on each GPU"));
  EXPECT_THAT(names_of(all), Contains("an engine over 4 GPUs"));
  EXPECT_THAT(names_of(all), Not(Contains("an engine over 2 GPUs")));
  const std::string text = compare_text(job, all);
  EXPECT_THAT(text, ::testing::HasSubstr("at once"));
  EXPECT_THAT(text, Not(::testing::HasSubstr("no  step")));
  for (const Alternative& a : all) EXPECT_GT(a.estimate.serving->sequences, 0) << a.name;
}

TEST(CompareDegrees, ShowsEveryStageAtWhichDeepSpeedSharesExperts) {
  const Job job = job_of(R"({"model": {"model_type": "mixtral", "hidden_size": 1024,
    "intermediate_size": 3584, "num_hidden_layers": 4, "num_attention_heads": 16,
    "num_key_value_heads": 4, "num_local_experts": 8, "num_experts_per_tok": 2},
    "cluster": "8xH100", "framework": {"name": "deepspeed", "zero_stage": 2},
    "parallel": {"expert": 4}, "workload": {"micro_batch": 1, "sequence_length": 2048}})");
  const std::vector<Alternative> all = compare_plans(job, calibration());
  EXPECT_THAT(names_of(all), Contains("ZeRO-1"));
  EXPECT_THAT(names_of(all), Contains("ZeRO-3"));
  expect_possible(job);
}

TEST(CompareDegrees, ShowsOnlyPlansThatCanRun) {
  const Job job = job_of(R"({"model": "llama-2-7b", "cluster": "8xH100",
    "framework": {"name": "deepspeed", "zero_stage": 1}, "parallel": {"pipeline": 4},
    "workload": {"micro_batch": 1, "sequence_length": 2048, "gradient_accumulation": 8}})");
  const std::vector<Alternative> all = compare_plans(job, calibration());
  EXPECT_TRUE(named(all, "ZeRO-1").is_current);
  EXPECT_THAT(names_of(all), Contains("ZeRO-0 (data parallel)"));
  // DeepSpeed's pipeline engine takes no stage above 1.
  EXPECT_THAT(names_of(all), Not(Contains("ZeRO-2")));
  EXPECT_THAT(names_of(all), Not(Contains("ZeRO-3")));
  expect_possible(job);
}

std::string inference(const std::string& framework, const std::string& more) {
  return R"({"model": "llama-2-7b", "cluster": {"gpu": "H100-SXM5-80GB", "gpus_per_node": 1,
    "host_memory_bytes": 549755813888}, "framework": )" +
         framework + R"(, "precision": "bf16-pure", "workload": {"kind": "inference",
    "batch": 4, "prompt_length": 512, "new_tokens": 64)" +
         more + "}}";
}

TEST(CompareGeneration, IsWhatTheSameJobsSay) {
  const Job job = job_of(inference("\"single\"", ""));
  const std::vector<Alternative> all = compare_plans(job, calibration());
  EXPECT_TRUE(all.front().is_current);
  for (const char* format : {"fp8", "int8", "nf4"})
    expect_same(named(all, std::string("weights in ") + format).estimate,
                inference("\"single\"", std::string(R"(, "quantization": ")") + format + "\""));
  expect_same(named(all, "KV cache in fp8").estimate,
              inference("\"single\"", R"(, "kv_cache_dtype": "fp8")"));
  expect_same(named(all, "weights on the host (ZeRO-Inference)").estimate,
              inference(R"({"name": "deepspeed", "zero_stage": 3, "offload_param": "cpu"})", ""));
  const std::vector<Alternative> quantized =
      compare_plans(job_of(inference("\"single\"", R"(, "quantization": "nf4")")), calibration());
  expect_same(named(quantized, "weights as they are").estimate, inference("\"single\"", ""));
}

std::string ppo(const std::string& framework, const std::string& models) {
  return R"({"model": "opt-1.3b", "cluster": "8xA100-40GB", "precision": "bf16-master",
    "framework": )" +
         framework + R"(, "workload": {"kind": "rlhf", "algorithm": "ppo", "micro_batch": 4,
    "prompt_length": 256, "new_tokens": 64, "models": {"critic": {"model": "opt-350m"},
    "reward": {"model": "opt-350m")" +
         models + "}}}}";
}

TEST(CompareRlhf, IsWhatTheSameJobsSay) {
  const Job job = job_of(ppo(R"({"name": "deepspeed", "zero_stage": 3})", ""));
  const std::vector<Alternative> all = compare_plans(job, calibration());
  EXPECT_TRUE(named(all, "ZeRO-3").is_current);
  for (int stage = 1; stage <= 2; ++stage)
    expect_same(named(all, "ZeRO-" + std::to_string(stage)).estimate,
                ppo(R"({"name": "deepspeed", "zero_stage": )" + std::to_string(stage) + "}", ""));
  const Estimate& away = named(all, "frozen models on the host while idle").estimate;
  expect_same(away, ppo(R"({"name": "deepspeed", "zero_stage": 3})",
                        R"(, "idle": "host"}, "reference": {"idle": "host")"));
  EXPECT_GT(away.host_per_node.total(), 0);
}

/// Under DeepSpeed each rank has a whole network, which one that is divided need not be.
TEST(CompareRlhf, HasNoStagesOfDeepSpeedForDividedNetworks) {
  const Job job = job_of(R"({"model": "qwen2.5-0.5b", "cluster": "2xH100", "framework": "megatron",
      "parallel": {"pipeline": 2, "virtual_pipeline": 2},
      "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 2,
                   "gradient_accumulation": 4, "prompt_length": 128, "new_tokens": 128,
                   "generation_batch": 16,
                   "rollout": {"gpu_memory_utilization": 0.4, "sleep_level": 1}}})");
  for (const std::string& name : names_of(compare_plans(job, calibration())))
    EXPECT_FALSE(name.starts_with("ZeRO")) << name;
}

}  // namespace
}  // namespace shardplan
