// `shardplan report` as its users meet it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kJobs = SHARDPLAN_SOURCE_DIR "/configs/jobs/";

Finished report(std::vector<std::string> arguments, const std::string& env = "") {
  arguments.insert(arguments.begin(), "report");
  return run_program(SHARDPLAN_PROGRAM, arguments, env);
}

TEST(Report, TakesItsFormatFromTheExtension) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> beginnings{
      {"r.html", "<!DOCTYPE html>"}, {"r.md", "# Will "}, {"r.json", "{"}, {"r.csv", "section,"}};
  for (const auto& [file, beginning] : beginnings) {
    const Finished f = report({kJobs + "gpt2-single.json", "-o", folder.path(file)});
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out + f.err, "");
    EXPECT_THAT(text_of(folder.path(file)), StartsWith(beginning));
  }
  const Finished odd = report({kJobs + "gpt2-single.json", "-o", folder.path("r.pdf")});
  EXPECT_EQ(odd.exit_code, 3);
  EXPECT_THAT(odd.err, AllOf(HasSubstr("'.pdf' names no format"), HasSubstr("--format")));
  EXPECT_EQ(report({kJobs + "gpt2-single.json", "--format", "pdf"}).exit_code, 2);
  EXPECT_EQ(report({kJobs + "gpt2-single.json", "--language", "xx"}).exit_code, 2);
}

TEST(Report, SpeaksTheLanguageThatIsAsked) {
  const std::vector<std::pair<std::string, std::string>> words{
      {"en", "optimizer states"}, {"ja", "オプティマイザ状態"}, {"ko", "옵티마이저 상태"}};
  for (const auto& [language, word] : words)
    EXPECT_THAT(report({kJobs + "gpt2-single.json", "--language", language}).out, HasSubstr(word));
}

TEST(Report, GivesTheCommandThatMakesItAgain) {
  const Finished f = report({kJobs + "gpt2-single.json", "--micro-batch", "2", "--format", "json"});
  EXPECT_THAT(f.out, HasSubstr("gpt2-single.json --micro-batch 2 --format json\""));
  EXPECT_THAT(report({"gpt2", "H100-80GB", "--micro-batch", "2"}).out,
              HasSubstr("shardplan report gpt2 H100-80GB --micro-batch 2\n"));
}

/// Who said a field: the job, nobody, its ds_config; and of one GPU nobody asks how many.
TEST(Report, SaysWhereFieldsComeFrom) {
  const std::string one = report({"gpt2", "1xH100-80GB", "--micro-batch", "2"}).out;
  EXPECT_THAT(one, AllOf(HasSubstr("| micro-batch, samples per GPU | 2 | given |"),
                         HasSubstr("| optimizer | AdamW | default |"),
                         HasSubstr("| global batch, samples | 2 | computed |"),
                         HasSubstr("| activation checkpointing | every block | assumed |"),
                         Not(HasSubstr("all GPUs"))));
  EXPECT_THAT(report({"gpt2", "2xH100-80GB"}).out, HasSubstr("on all GPUs together"));
  const TemporaryFolder folder;
  const std::string config =
      folder.file("ds.json", R"({"train_micro_batch_size_per_gpu": 3, "bf16": {"enabled": true}})");
  EXPECT_THAT(report({"gpt2", "2xH100-80GB", "--ds-config", config}).out,
              AllOf(HasSubstr("| micro-batch, samples per GPU | 3 | ds\\_config |"),
                    HasSubstr("| optimizer | AdamW | default |")));
}

/// What an import takes from what its trainer does is no word of the user's.
TEST(Report, SaysWhatATrainerDoesWhereItsFileIsSilent) {
  const TemporaryFolder folder;
  const std::string file = folder.file(
      "a.yaml", "base_model: qwen3-0.6b\nbf16: true\nmicro_batch_size: 2\ndatasets: [{path: a}]\n");
  EXPECT_THAT(
      report({file, "--cluster", "2xH100-80GB"}).out,
      AllOf(HasSubstr("| 2 | given |"), HasSubstr("| sequence length, tokens | 512 | assumed |")));
}

/// What only the division of a network finds out is told by the file's key.
TEST(Report, RefusesADivisionByTheKeyOfTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.file("a.yaml",
                                       "base_model: llama-3.1-8b\nbf16: true\nfsdp_version: 2\n"
                                       "fsdp_config: {reshard_after_forward: true}\n"
                                       "tensor_parallel_size: 2\ndp_shard_size: 4\n"
                                       "cut_cross_entropy: true\ndatasets: [{path: a}]\n");
  EXPECT_THAT(report({file, "--cluster", "8xH100-80GB"}).err,
              HasSubstr("a.yaml: line 5, column 1: tensor_parallel_size"));
}

TEST(Report, IsTheSameBytesEveryTimeAndInEveryLocale) {
  for (const char* format : {"html", "md", "json", "csv"}) {
    const std::vector<std::string> arguments{kJobs + "gpt2-zero1.json", "--format", format};
    const Finished first = report(arguments, "LC_ALL=C");
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_TRUE(first.out ==
                report(arguments, "LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 TZ=Asia/Seoul").out);
  }
}

TEST(Report, SaysWhatChangesAgainstAnotherJob) {
  const Finished f = report({kJobs + "gpt2-zero1.json", "--against", kJobs + "gpt2-ddp.json"});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("| framework | DDP | DeepSpeed ZeRO-1 |"),
                           HasSubstr("## To reproduce this report")));
  const Finished missing = report({kJobs + "gpt2-zero1.json", "--against", "absent.json"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("absent.json"));
}

TEST(Report, OfAFolderIsAnIndexAndARowAJob) {
  const TemporaryFolder jobs, out;
  jobs.file("good.json", R"({"model": "gpt2", "cluster": "1xH100"})");
  jobs.file("broken.json", R"({"modle": "gpt2", "cluster": "1xH100"})");
  const Finished f = report({jobs.path(""), "--pages", "-o", out.path("reports")});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_EQ(f.out, "");
  EXPECT_THAT(f.err, AllOf(HasSubstr("broken.json"), HasSubstr("1 of 2 jobs")));
  EXPECT_THAT(text_of(out.path("reports/jobs.csv")), HasSubstr("good.json,gpt2,"));
  const std::string index = text_of(out.path("reports/index.html"));
  EXPECT_THAT(index, HasSubstr("<a href=\"jobs/000002.html\">good.json</a>"));
  EXPECT_THAT(text_of(out.path("reports/jobs/000002.html")), HasSubstr("gpt2"));
  EXPECT_FALSE(std::filesystem::exists(out.path("reports/jobs/000001.html")));
  EXPECT_FALSE(std::filesystem::exists(out.path("reports/index.html.part")));
}

/// A report of a job, without what it says of the command that made it.
Json without_command(const std::string& report) {
  Json json = parse_json(report, "report");
  for (Json& section : json["sections"]) section.erase("command");
  return json;
}

TEST(Report, ShowsASearchThatItMakesAsOneThatItIsGiven) {
  const TemporaryFolder folder;
  const std::string job = kJobs + "gpt2-single.json", result = folder.path("search.json");
  ASSERT_EQ(
      run_program(SHARDPLAN_PROGRAM, {"search", job, "--format", "json", "-o", result}).exit_code,
      0);
  const Finished made = report({job, "--search", "--format", "json"});
  const Finished given = report({job, "--search-result", result, "--format", "json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  ASSERT_EQ(given.exit_code, 0) << given.err;
  EXPECT_THAT(made.out, HasSubstr("\"id\": \"search\""));
  EXPECT_EQ(without_command(made.out), without_command(given.out));
}

TEST(Report, RefusesASearchThatIsNotOfItsJob) {
  const TemporaryFolder folder;
  const std::string job = kJobs + "gpt2-single.json";
  const Finished odd = report({job, "--search-result", job});
  EXPECT_EQ(odd.exit_code, 3);
  EXPECT_THAT(odd.err, HasSubstr("shardplan.search/1"));
  EXPECT_EQ(report({job, "--search", "--against", job}).exit_code, 3);
  EXPECT_EQ(report({folder.path(""), "--search", "-o", folder.path("out")}).exit_code, 3);
  EXPECT_EQ(report({job, "--search", "--search-result", job}).exit_code, 2);
}

TEST(Report, OfAFolderNeedsAPlaceToGo) {
  const TemporaryFolder jobs;
  jobs.file("good.json", R"({"model": "gpt2", "cluster": "1xH100"})");
  const Finished nowhere = report({jobs.path("")});
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("--output"));
  const Finished file = report({jobs.path(""), "-o", jobs.path("good.json")});
  EXPECT_EQ(file.exit_code, 3);
  EXPECT_THAT(file.err, HasSubstr("cannot make the folder"));
  EXPECT_EQ(report({jobs.path(""), "--against", jobs.path("good.json"), "-o", "x"}).exit_code, 3);
}

}  // namespace
}  // namespace shardplan
