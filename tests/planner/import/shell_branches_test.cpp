#include "import/shell_branches.h"

#include <gtest/gtest.h>

#include "import/command_line.h"

namespace shardplan::importing::shell_branches_test {
namespace {

/// The words of the script's last command, with blanks between.
std::string last(const std::string& script) {
  const std::vector<Command> commands = parse_shell(script);
  std::string text;
  if (!commands.empty())
    for (const Word& word : commands.back().words) text += (text.empty() ? "" : " ") + word.text;
  return text;
}

TEST(ShellBranches, TakeTheOneWhoseConditionHolds) {
  const std::string script =
      "if [ $AC = full ]; then\n  A=\"--recompute-granularity full\"\n"
      "elif [ $AC = sel ]; then\n  A=--recompute-activations\n"
      "else\n  A=--none\nfi\nrun $A\n";
  EXPECT_EQ(last("AC=full\n" + script), "run --recompute-granularity full");
  EXPECT_EQ(last("AC=sel\n" + script), "run --recompute-activations");
  EXPECT_EQ(last("AC=other\n" + script), "run --none");
}

TEST(ShellBranches, JoinConditions) {
  const std::string script = "if [[ $SP == true && $TP -gt 1 ]]; then A=--sp; fi\nrun $A\n";
  EXPECT_EQ(last("SP=true\nTP=2\n" + script), "run --sp");
  EXPECT_EQ(last("SP=true\nTP=1\n" + script), "run");
  EXPECT_EQ(last("A=1\nif [ $A = 2 ] || [ $A != 3 ]; then B=x; fi\nrun $B\n"), "run x");
  EXPECT_EQ(last("A=\"\"\nif [ ! -z \"$A\" ]; then B=x; fi\nrun $B\n"), "run");
}

// Nobody but the caller knows $1: of two assignments the last counts, as without conditions.
TEST(ShellBranches, KeepWhatOnlyTheCallerKnows) {
  const std::string script = "if [ $A = x ]; then B=1; else B=2; fi\nrun $B\n";
  EXPECT_EQ(last("A=$1\n" + script), "run 2");
  EXPECT_EQ(last("A=${1:-x}\n" + script), "run 1");
  EXPECT_EQ(last("if [ -z \"$GPUS\" ]; then GPUS=8; fi\nrun $GPUS\n"), "run 8");
  EXPECT_EQ(last("X=0\nif [ -f y ]; then X=1; fi\nif [ $X = 0 ]; then B=a; fi\nrun $B\n"), "run a");
}

TEST(ShellBranches, LeaveOutCommandsThatNeverRun) {
  EXPECT_EQ(
      last("D=0\nif [ $D = 1 ]; then\n  if true; then run debug; fi\nelse\n  run train\nfi\n"),
      "run train");
  EXPECT_EQ(last("for i in 1 2; do if [ 1 = 2 ]; then run a; fi; done\nrun b\n"), "run b");
}

TEST(ShellBranches, OfCaseTakeTheOneThatMatches) {
  const std::string script =
      "case $SIZE in\n  7b|7B) L=32 ;;\n  13b) L=40 ;;\n  *) L=80 ;;\nesac\nrun $L\n";
  EXPECT_EQ(last("SIZE=7B\n" + script), "run 32");
  EXPECT_EQ(last("SIZE=13b\n" + script), "run 40");
  EXPECT_EQ(last("SIZE=70b\n" + script), "run 80");
}

// A script's own options are exceptions to what it starts with.
TEST(ShellBranches, OptionsOfTheScriptChangeNothing) {
  EXPECT_EQ(last("DEBUG=false\nwhile [ $# -gt 0 ]; do\n  case $1 in\n    --debug) DEBUG=true ;;\n"
                 "  esac\n  shift\ndone\nif [ $DEBUG = true ]; then A=--debug; fi\nrun $A\n"),
            "run");
}

TEST(Scripts, ReadHereStringsAndParts) {
  EXPECT_EQ(last("read A B <<< \"one two three\"\nrun $A \"$B\"\n"), "run one two three");
  EXPECT_EQ(last("M=a/b\nrun x${M##*/}\n"), "run x");
  EXPECT_EQ(last("run --transformer-impl local\n"), "run --transformer-impl local");
}

/// The text of `bash -c` is a script of its own, over the variables that are there (BigScience).
TEST(InnerScripts, HaveTheVariablesOfTheOuter) {
  const std::string script =
      "export LAUNCHER=\"torchrun --nproc_per_node 4\"\nexport CMD=\"train.py --batch 2\"\n";
  const std::vector<Command> commands =
      parse_shell(script + "srun --jobid $J bash -c '$LAUNCHER --node_rank 0 $CMD' 2>&1\n");
  std::string inner;
  for (const Word& word : commands.front().words) inner += word.text + " ";
  EXPECT_EQ(inner, "torchrun --nproc_per_node 4 --node_rank 0 train.py --batch 2 ");
  EXPECT_EQ(parse_shell("N=3; bash -lc 'run $N'\n").front().words.back().text, "3");
}

TEST(InnerScripts, End) {
  std::string script = "run";
  for (int i = 0; i < 20; ++i) script = "S='" + script + "'\nbash -c \"$S\"";
  parse_shell(script);
  parse_shell("A='bash -c $A'\nbash -c \"$A\"\n");
}

}  // namespace
}  // namespace shardplan::importing::shell_branches_test
