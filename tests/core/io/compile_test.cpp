// torch.compile in a job: read, checked, and refused where it cannot be estimated.
#include "load/compile.h"

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

std::string problem_of(const std::string& rest) {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  JobContext context;
  context.hardware = &kCatalog;
  return error_text([&] {
    load_job(parse_json(R"({"schema": "shardplan.job/1", "model": "qwen2.5-0.5b",
                            "cluster": "2xH100", "trainer": "hf_trainer", )" +
                            rest + "}",
                        "job"),
             "job.json", context);
  });
}

TEST(Compile, SaysWhatItCannotEstimate) {
  EXPECT_THAT(problem_of(R"("compile": true, "framework": {"name": "deepspeed"})"),
              HasSubstr("under DeepSpeed"));
  EXPECT_THAT(problem_of(R"("compile": true, "framework": {"name": "fsdp2"})"),
              HasSubstr(R"({"scope": "block"})"));
  EXPECT_THAT(problem_of(R"("compile": {"mode": "reduce-overhead"}, "framework": {"name": "ddp"})"),
              HasSubstr("CUDA graphs"));
  EXPECT_THAT(problem_of(R"("compile": true, "kernels": "liger", "framework": {"name": "ddp"})"),
              HasSubstr("kernels torch"));
}

}  // namespace compile_test
}  // namespace shardplan
