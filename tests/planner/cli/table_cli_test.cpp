// `shardplan table`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::table_cli_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Finished table(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "table");
  return run_program(SHARDPLAN_PROGRAM, arguments);
}

TEST(TableCommand, WritesMarkdownHtmlAndJson) {
  const std::vector<std::string> asked{"gpt2-xl", "--methods", "full,lora", "--machines",
                                       "1xH100,p5.48xlarge"};
  const auto with = [&](const std::string& format) {
    std::vector<std::string> all = asked;
    all.insert(all.end(), {"--format", format});
    return table(all);
  };
  const Finished markdown = table(asked);
  EXPECT_EQ(markdown.exit_code, 0) << markdown.err;
  EXPECT_THAT(markdown.out, AllOf(HasSubstr("# Which machine for which model?"),
                                  HasSubstr("| gpt2-xl | full |"), HasSubstr("AWS p5.48xlarge")));
  EXPECT_THAT(with("html").out, HasSubstr("<table"));
  EXPECT_EQ(parse_json(with("json").out, "stdout").at("kind"), "machines");
}

TEST(TableCommand, RefusesWhatItsListsSay) {
  EXPECT_EQ(table({}).exit_code, 2);
  const Finished cluster = table({"gpt2", "--cluster", "1xH100"});
  EXPECT_EQ(cluster.exit_code, 3);
  EXPECT_THAT(cluster.err, AllOf(HasSubstr("--cluster"), HasSubstr("--machines")));
  const Finished machine = table({"gpt2", "--machines", "1xH1O0"});
  EXPECT_EQ(machine.exit_code, 3);
  EXPECT_THAT(machine.err, HasSubstr("did you mean '1xH100'?"));
  const Finished method = table({"gpt2", "--methods", "lorra"});
  EXPECT_EQ(method.exit_code, 3);
  EXPECT_THAT(method.err, HasSubstr("lora"));
}

TEST(TableCommand, SaysByItsExitCodeThatNothingFits) {
  EXPECT_EQ(table({"llama-2-70b", "--methods", "full", "--machines", "1xT4"}).exit_code, 4);
}

}  // namespace
}  // namespace shardplan::table_cli_test
