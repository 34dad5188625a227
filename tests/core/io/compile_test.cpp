// torch.compile in a job: read, checked, and refused where it cannot be estimated.
#include "load/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/problems.h"
#include "json/document.h"
#include "support/error_of.h"

namespace shardplan {
namespace compile_test {

using testing::HasSubstr;

std::optional<Compile> read(const std::string& job) {
  const Json json = parse_json(job, "job");
  ObjectReader reader(json, "job.json");
  return read_compile(reader);
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

TEST(Compile, IsRefusedWhereItIsAskedForOnly) {
  Plan plan;
  EXPECT_FALSE(compile_problem(plan).has_value());
  plan.compile.emplace();
  const auto problem = compile_problem(plan);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->key, "compile");
}

TEST(Compile, IsForTraining) {
  Plan plan;
  plan.compile.emplace();
  plan.workload.kind = WorkKind::inference;
  EXPECT_THAT(compile_problem(plan)->message, HasSubstr("for training"));
}

}  // namespace compile_test
}  // namespace shardplan
