// torch.compile in a job: read, checked, and refused where it cannot be estimated.
#include "load/compile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"
#include "trainers/registry.h"

namespace shardplan {
namespace compile_test {

using testing::HasSubstr;

const TrainerDescription& trainer_of(std::string_view name) {
  for (const TrainerDescription* trainer : trainers())
    if (trainer->name == name) return *trainer;
  throw std::invalid_argument("no such trainer");
}

std::optional<Compile> read(const std::string& job, std::string_view trainer = "loop") {
  const Json json = parse_json(job, "job");
  ObjectReader reader(json, "job.json");
  return read_compile(reader, trainer_of(trainer));
}

TEST(Compile, FalseAndNothingAreEagerSteps) {
  EXPECT_FALSE(read("{}").has_value());
  EXPECT_FALSE(read(R"({"compile": false})").has_value());
}

TEST(Compile, TrueIsTheDefaultModeOverTheModel) {
  const auto compile = read(R"({"compile": true})");
  ASSERT_TRUE(compile.has_value());
  EXPECT_EQ(compile->mode, CompileMode::usual);
  EXPECT_EQ(compile->scope, CompileScope::model);
}

TEST(Compile, TakesModeAndScope) {
  const auto compile = read(R"({"compile": {"mode": "reduce-overhead", "scope": "block"}})");
  ASSERT_TRUE(compile.has_value());
  EXPECT_EQ(compile->mode, CompileMode::reduce_overhead);
  EXPECT_EQ(compile->scope, CompileScope::block);
}

TEST(Compile, NamesWhatItDoesNotKnow) {
  EXPECT_THAT(error_text([] { read(R"({"compile": {"mode": "fast"}})"); }),
              HasSubstr("compile.mode"));
  EXPECT_THAT(error_text([] { read(R"({"compile": {"backend": "eager"}})"); }),
              HasSubstr("backend"));
  EXPECT_THAT(error_text([] { read(R"({"compile": 3})"); }),
              HasSubstr("false, true, or an object"));
}

TEST(Compile, TorchtitanCompilesBlocks) {
  const auto compile = read(R"({"compile": true})", "torchtitan");
  ASSERT_TRUE(compile.has_value());
  EXPECT_EQ(compile->scope, CompileScope::block);
}

std::string problem_of(const std::string& rest, std::string_view model = "qwen2.5-0.5b",
                       std::string_view cluster = "2xH100") {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  JobContext context;
  context.hardware = &kCatalog;
  return error_text([&] {
    load_job(parse_json(fmt::format(R"({{"schema": "shardplan.job/1", "model": "{}",
                                         "cluster": "{}", "trainer": "hf_trainer", {}}})",
                                    model, cluster, rest),
                        "job"),
             "job.json", context);
  });
}

TEST(Compile, SaysWhatItCannotEstimate) {
  EXPECT_THAT(problem_of(R"("compile": {"mode": "reduce-overhead"},
                            "framework": {"name": "deepspeed", "zero_stage": 2})"),
              HasSubstr("in buffers of its own"));
  EXPECT_THAT(problem_of(R"("compile": true, "framework": {"name": "deepspeed"},
                            "parallel": {"sequence": 2})"),
              HasSubstr("exchanges inside"));
  EXPECT_THAT(problem_of(R"("compile": true, "framework": {"name": "deepspeed", "ds_config": {
                                "train_micro_batch_size_per_gpu": 1,
                                "zero_optimization": {"stage": 3},
                                "compile": {"deepcompile": true}}})"),
              HasSubstr("without compile.deepcompile"));
  EXPECT_THAT(problem_of(R"("compile": {"mode": "reduce-overhead"},
                            "framework": {"name": "fsdp2"})"),
              HasSubstr("CUDA graphs"));
  EXPECT_THAT(problem_of(R"("compile": {"mode": "reduce-overhead"},
                            "framework": {"name": "ddp", "gradient_as_bucket_view": true})"),
              HasSubstr("CUDA graphs"));
  EXPECT_THAT(problem_of(R"("compile": true, "kernels": "liger", "precision": "bf16-pure",
                            "framework": {"name": "ddp"})"),
              HasSubstr("hands on in another shape"));
  EXPECT_THAT(problem_of(R"("compile": true, "kernels": ["rms_norm"],
                            "framework": {"name": "single"})",
                         "qwen2.5-0.5b", "1xH100"),
              HasSubstr("rotation and fused loss among them"));
}

TEST(Compile, EstimatesEnginesAndCutGraphs) {
  for (const int stage : {0, 1, 2, 3})
    EXPECT_EQ(
        problem_of(fmt::format(
            R"("compile": true, "framework": {{"name": "deepspeed", "zero_stage": {}}})", stage)),
        "no error");
  EXPECT_EQ(problem_of(R"("compile": {"mode": "reduce-overhead"}, "framework": {"name": "ddp"})"),
            "no error");
}

TEST(Compile, SaysWhatStops) {
  EXPECT_THAT(problem_of(R"("compile": true, "kernels": "liger", "precision": "bf16-autocast",
                            "framework": {"name": "single"})",
                         "qwen2.5-0.5b", "1xH100"),
              HasSubstr("torch.addmm(out_dtype=)"));
  EXPECT_THAT(problem_of(R"("compile": {"mode": "reduce-overhead"},
                            "framework": {"name": "single"},
                            "workload": {"kind": "train", "gradient_accumulation": 2})",
                         "qwen2.5-0.5b", "1xH100"),
              HasSubstr("overwritten by a subsequent run"));
}

/// Under DDP buckets end within a layer where all of it trains, or adapters of its MLP.
TEST(Compile, LigerUnderDdpWhereNoBucketEndsInALayer) {
  const auto with = [](std::string_view targets, std::string_view checkpointing) {
    return problem_of(fmt::format(R"("compile": true, "kernels": "liger", "precision": "bf16-pure",
                       "framework": {{"name": "ddp"}}, "checkpointing": "{}",
                       "workload": {{"kind": "train", "method": "lora", "micro_batch": 1,
                                     "sequence_length": 512,
                                     "lora": {{"rank": 16, "targets": [{}]}}}})",
                                  checkpointing, targets),
                      "llama-3.2-1b");
  };
  const std::string attention = R"("q_proj", "k_proj", "v_proj", "o_proj")";
  EXPECT_EQ(with(attention, "none"), "no error");
  EXPECT_THAT(with(attention + R"(, "gate_proj", "up_proj", "down_proj")", "none"),
              HasSubstr("hands on in another shape"));
  EXPECT_EQ(with(attention + R"(, "gate_proj", "up_proj", "down_proj")", "full"), "no error");
}

TEST(Compile, FewBitsWithoutBiasesOnly) {
  const auto with = [](std::string_view model, std::string_view base) {
    return problem_of(fmt::format(R"("compile": true, "framework": {{"name": "single"}},
                       "workload": {{"kind": "train", "method": "lora", "micro_batch": 1,
                                     "sequence_length": 512,
                                     "lora": {{"rank": 8, "targets": ["q_proj"],
                                               "quantization": "{}"}}}})",
                                  base),
                      model, "1xH100");
  };
  EXPECT_THAT(with("qwen2.5-0.5b", "nf4"), HasSubstr("converts fp32 biases"));
  EXPECT_EQ(with("llama-3.2-1b", "int8"), "no error");
  EXPECT_EQ(with("llama-3.2-1b", "nf4"), "no error");
}

TEST(Compile, SaysWhatNoRunConfirms) {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  JobContext context;
  context.hardware = &kCatalog;
  const auto assumed = [&](std::string_view rest) {
    return load_job(parse_json(fmt::format(R"({{"schema": "shardplan.job/1",
                                                "model": "llama-3.2-1b", "cluster": "1xH100",
                                                "trainer": "hf_trainer", "precision": "bf16-pure",
                                                "framework": {{"name": "single"}}, {}}})",
                                           rest),
                               "job"),
                    "job.json", context)
        .assumed;
  };
  const auto says = [](std::string_view words) {
    return testing::Contains(HasSubstr(std::string(words)));
  };
  EXPECT_THAT(assumed(R"("compile": true)"), testing::Not(says("no run confirms it")));
  EXPECT_THAT(assumed(R"("compile": true, "kernels": "liger")"), says("Liger-Kernel's functions"));
  EXPECT_THAT(assumed(R"("compile": true, "kernels": "liger", "checkpointing": "full")"),
              says("run eagerly"));
  EXPECT_THAT(assumed(R"("compile": {"mode": "reduce-overhead"})"), says("CUDA graphs"));
  EXPECT_THAT(assumed(R"("compile": {"mode": "max-autotune"})"), says("timing them"));
}

}  // namespace compile_test
}  // namespace shardplan
