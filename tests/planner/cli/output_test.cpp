// Answers reach their place whole, or the program says that they did not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::output_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kFit{"fit", "gpt2", "1xA100-40GB"};

Finished shardplan(const std::vector<std::string>& arguments, const std::string& environment = "",
                   const std::string& redirections = "") {
  return run_program(SHARDPLAN_PROGRAM, arguments, environment, redirections);
}

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
}

// As `shardplan fit <(command)`: the shell makes a pipe of the text.
TEST(Pipes, AreReadThoughTheyCanBeReadOnlyOnce) {
  const Finished read = shardplan({"fit", "/dev/fd/3", "1xA100-40GB"}, "",
                                  "3<<'END'\n{\"model_type\": \"gpt2\"}\nEND\n");
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("124 M parameters"));
}

TEST(StandardOutput, ThatTakesNothingIsAnError) {
  for (const std::vector<std::string>& command :
       {kFit, with(kFit, {"--format", "json"}), std::vector<std::string>{"--help"}}) {
    const Finished full = shardplan(command, "", ">/dev/full");
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_THAT(full.err, AllOf(HasSubstr("standard output"), HasSubstr("No space left")));
    const Finished closed = shardplan(command, "", ">&-");
    EXPECT_EQ(closed.exit_code, 1);
    EXPECT_THAT(closed.err, HasSubstr("standard output"));
  }
}

TEST(StandardError, ThatTakesNothingIsNone) {
  EXPECT_EQ(shardplan({"fit", "lama-2-7b", "8xH100"}, "", "2>/dev/full").exit_code, 3);
  EXPECT_EQ(shardplan({"fit", "lama-2-7b", "8xH100"}, "", "2>&-").exit_code, 3);
}

TEST(OutputFile, IsWrittenWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const std::string answer = folder.path("answer");
  const Finished f = shardplan(with(kFit, {"-o", answer}));
  EXPECT_EQ(f.exit_code, 0);
  EXPECT_EQ(f.out, "");
  EXPECT_EQ(text_of(answer), shardplan(kFit).out);

  const Finished nowhere = shardplan(with(kFit, {"-o", folder.path("no/such/answer")}));
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("no/such/answer"), HasSubstr("No such file")));

  // A bad job leaves an earlier answer as it was.
  const std::string before = text_of(answer);
  EXPECT_EQ(shardplan(with(kFit, {"--precision", "x", "-o", answer})).exit_code, 3);
  EXPECT_EQ(text_of(answer), before);

  // The place of the answer is a folder.
  fs::create_directory(folder.path("folder"));
  const Finished on_folder = shardplan(with(kFit, {"-o", folder.path("folder")}));
  EXPECT_EQ(on_folder.exit_code, 3);
  EXPECT_THAT(on_folder.err, HasSubstr("it is a folder"));
  EXPECT_THAT(names_in(folder.path("")), ::testing::ElementsAre("answer", "folder"));
}

TEST(OutputFile, BehindALinkIsWrittenAndTheLinkStays) {
  const TemporaryFolder folder;
  folder.file("target", "old");
  fs::create_symlink("target", folder.path("link"));
  fs::create_symlink("fresh", folder.path("dangling"));
  EXPECT_EQ(shardplan(with(kFit, {"-o", folder.path("link")})).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_THAT(text_of(folder.path("target")), HasSubstr("gpt2"));
  EXPECT_EQ(shardplan(with(kFit, {"-o", folder.path("dangling")})).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder.path("dangling")));
  EXPECT_THAT(text_of(folder.path("fresh")), HasSubstr("gpt2"));
}

TEST(OutputFile, KeepsItsPermissionsAndARefusalToBeWritten) {
  const TemporaryFolder folder;
  const std::string closed = folder.file("closed", "kept");
  fs::permissions(closed, fs::perms::owner_read);
  const Finished refused = shardplan(with(kFit, {"-o", closed}));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("read-only"));
  EXPECT_EQ(text_of(closed), "kept");

  const std::string own = folder.file("own", "");
  fs::permissions(own, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(shardplan(with(kFit, {"-o", own})).exit_code, 0);
  EXPECT_EQ(fs::status(own).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(OutputFile, MayBeADevice) {
  EXPECT_EQ(shardplan(with(kFit, {"-o", "/dev/null"})).exit_code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const Finished full = shardplan(with(kFit, {"-o", "/dev/full"}));
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
  EXPECT_THAT(shardplan(with(kFit, {"-o", "/dev/stdout"})).out, HasSubstr("gpt2"));
}

TEST(Export, ReplacesNothingUnlessTold) {
  const TemporaryFolder folder;
  const std::string to = folder.path("a/plan");
  const std::vector<std::string> command{
      "export", SHARDPLAN_SOURCE_DIR "/configs/jobs/gpt2-zero1.json", "--to", to};
  EXPECT_EQ(shardplan(command).exit_code, 0);
  EXPECT_EQ(shardplan(command).exit_code, 0) << "the same files again are no loss";
  const std::vector<std::string> names = names_in(to);
  EXPECT_NE(fs::status(to + "/launch.sh").permissions() & fs::perms::owner_exec, fs::perms::none);

  folder.file("a/plan/ds_config.json", "mine");
  const Finished refused = shardplan(command);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("ds_config.json"), HasSubstr("--force")));
  EXPECT_EQ(text_of(to + "/ds_config.json"), "mine");

  EXPECT_EQ(shardplan(with(command, {"--force"})).exit_code, 0);
  EXPECT_THAT(text_of(to + "/ds_config.json"), HasSubstr("zero_optimization"));
  EXPECT_EQ(names_in(to), names);
}

TEST(Export, ThatCannotBeWrittenLeavesNoFolder) {
  const TemporaryFolder folder;
  // A name that no file system holds stands for a disk that is full.
  const Finished f = shardplan({"export", SHARDPLAN_SOURCE_DIR "/configs/jobs/gpt2-zero1.json",
                                "--to", folder.path("x/" + std::string(300, 'y'))});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_FALSE(fs::exists(folder.path("x")));
}

TEST(Export, ToAFolderHasNoFileBesideIt) {
  const TemporaryFolder folder;
  const Finished f = shardplan({"export", SHARDPLAN_SOURCE_DIR "/configs/jobs/gpt2-zero1.json",
                                "--to", folder.path("plan"), "-o", folder.path("one.json")});
  EXPECT_EQ(f.exit_code, 2);
  EXPECT_THAT(f.err, AllOf(HasSubstr("--to"), HasSubstr("--output")));
  EXPECT_FALSE(fs::exists(folder.path("plan")));
}

TEST(Ascii, IsAllThatTheCLocaleGets) {
  const std::string utf8 = shardplan(kFit, "LC_ALL=C.UTF-8").out;
  EXPECT_THAT(utf8, HasSubstr("×"));
  for (const char* locale : {"LC_ALL=C", "LC_ALL=POSIX", "LC_ALL= LC_CTYPE=de_DE.ISO-8859-1"}) {
    const Finished f = shardplan(kFit, locale);
    EXPECT_TRUE(is_ascii(f.out)) << locale;
    EXPECT_THAT(f.out, AllOf(HasSubstr("1 x A100"), HasSubstr("####"), Not(HasSubstr("?"))));
  }
  const Finished wrong = shardplan({"fit", "gpt2", "1×B×200"}, "LC_ALL=C");
  EXPECT_TRUE(is_ascii(wrong.err)) << wrong.err;
}

TEST(Ascii, InJsonLosesNothing) {
  const TemporaryFolder folder;
  const std::string model = folder.file("modèle.json", R"({"model_type": "gpt2"})");
  const Finished plain = shardplan({"model", model, "--format", "json"}, "LC_ALL=C.UTF-8");
  const Finished ascii = shardplan({"model", model, "--format", "json"}, "LC_ALL=C");
  EXPECT_TRUE(is_ascii(ascii.out));
  EXPECT_EQ(parse_json(ascii.out, "ascii"), parse_json(plain.out, "plain"));
}

TEST(Messages, AreALineThatNoTerminalObeys) {
  const TemporaryFolder folder;
  const std::string job = folder.file(
      "job.json", "{\"model\": \"gpt2\", \"cluster\": \"1xA100-40GB\", \"x\\u001b[31m\\n" +
                      std::string(5000, 'y') + "\": 1}");
  const Finished f = shardplan({"estimate", job});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1);
  EXPECT_THAT(f.err, AllOf(HasSubstr("\\x1b[31m\\n"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(f.err.size(), 2500U);
  EXPECT_THAT(shardplan({"fit", "gpt2\x1b[2J", "1xA100"}).err, HasSubstr("\\x1b[2J"));
  EXPECT_THAT(shardplan({"fit\x1b[2J"}).err, HasSubstr("\\x1b[2J"));
}

}  // namespace
}  // namespace shardplan::output_test
