// What a shell offers while a command line is typed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/subprocess.h"

namespace shardplan::completion_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

/// The words alone, without their meanings.
std::vector<std::string> offered(std::vector<std::string> words) {
  words.insert(words.begin(), "__complete");
  std::istringstream out(run_program(SHARDPLAN_PROGRAM, words).out);
  std::vector<std::string> offers;
  for (std::string line; std::getline(out, line);)
    offers.push_back(line.substr(0, line.find('\t')));
  return offers;
}

TEST(Completion, OffersCommandsAndTheirFlags) {
  EXPECT_THAT(offered({}), AllOf(Contains("fit"), Contains("lint"), Not(Contains("__complete"))));
  EXPECT_THAT(offered({"est"}), ElementsAre("estimate"));
  EXPECT_THAT(offered({"estimate", "--micro"}), ElementsAre("--micro-batch"));
  EXPECT_THAT(offered({"estmate", "--"}), IsEmpty());
}

TEST(Completion, OffersTheValuesOfAFlag) {
  EXPECT_THAT(offered({"fit", "gpt2", "--format", ""}), ElementsAre("text", "json"));
  EXPECT_THAT(offered({"estimate", "--framework", "fsdp"}), ElementsAre("fsdp2", "fsdp1"));
  EXPECT_THAT(offered({"estimate", "--cpu-offload", "t"}), ElementsAre("true"));
  EXPECT_THAT(offered({"estimate", "--model", "llama-3.1-8"}), ElementsAre("llama-3.1-8b"));
}

TEST(Completion, OffersModelsAndClustersInTheirPlaces) {
  EXPECT_THAT(offered({"fit", "GPT2-x"}), ElementsAre("gpt2-xl"));
  EXPECT_THAT(offered({"fit", "gpt2", "2x8xb20"}), Contains("2x8xB200-SXM6-180GB"));
  EXPECT_THAT(offered({"fit", "--zero-stage", "2", "gpt2", "p4de"}), ElementsAre("p4de.24xlarge"));
  EXPECT_THAT(offered({"estimate", ""}), IsEmpty()) << "a file: the shell's own completion";
}

TEST(Completion, HasAScriptThatEachShellReads) {
  const TemporaryFolder folder;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = folder.path(shell);
    ASSERT_EQ(run_program(SHARDPLAN_PROGRAM, {"completion", shell, "-o", script}).exit_code, 0);
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) continue;
    EXPECT_EQ(run_program(shell, {"-n", script}).exit_code, 0) << shell;
  }
  const std::string line = "source " + folder.path("bash") +
                           "; COMP_WORDS=(" SHARDPLAN_PROGRAM
                           " cat); COMP_CWORD=1; _shardplan; "
                           "echo ${COMPREPLY[@]}";
  EXPECT_EQ(run_program("bash", {"-c", line}).out, "catalog\n");
}

}  // namespace
}  // namespace shardplan::completion_test
