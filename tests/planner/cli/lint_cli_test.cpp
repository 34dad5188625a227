// `shardplan lint` as its users meet it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Finished lint(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "lint");
  return run_program(SHARDPLAN_PROGRAM, arguments);
}

constexpr const char* kClean = R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2}})";
constexpr const char* kWarned = R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2}, "vocabulary_size": 50257, "steps_per_prin": 10})";
constexpr const char* kOld = R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2, "cpu_offload": true}, "steps_per_prin": 10})";
constexpr const char* kBroken = R"({"zero_optimization": {"stage": 4}})";

TEST(LintExitCodes, AreZeroOneWhenStrictAndThree) {
  const TemporaryFolder folder;
  const std::string clean = folder.file("clean.json", kClean);
  const std::string warned = folder.file("warned.json", kWarned);
  EXPECT_EQ(lint({clean}).exit_code, 0);
  EXPECT_EQ(lint({clean, "--strict"}).exit_code, 0);
  EXPECT_EQ(lint({warned}).exit_code, 0);
  EXPECT_EQ(lint({warned, "--strict"}).exit_code, 1);
  EXPECT_EQ(lint({folder.file("broken.json", kBroken)}).exit_code, 3);
  EXPECT_EQ(lint({folder.path("absent.json")}).exit_code, 3);
  EXPECT_EQ(lint({}).exit_code, 3);
  EXPECT_EQ(lint({"--rules"}).exit_code, 0);
}

TEST(LintExplain, GivesReasonAdviceAndSourceOfARule) {
  const Finished told = lint({"--explain", "memory.bucket"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.out, AllOf(HasSubstr("memory.bucket (warning"), HasSubstr("What to do: "),
                              HasSubstr("Source: ")));
  const Finished unknown = lint({"--explain", "memory.buket"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'memory.bucket'"));
}

TEST(LintFixFile, IsWrittenOnlyWhereNothingIsUnlessAsked) {
  const TemporaryFolder folder;
  const std::string warned = folder.file("warned.json", kOld);
  const std::string copy = folder.path("fixed.json");
  EXPECT_EQ(lint({warned, "--fix", copy}).exit_code, 0);
  EXPECT_THAT(text_of(copy),
              AllOf(HasSubstr("\"offload_optimizer\""), HasSubstr("\"steps_per_prin\": 10")));
  EXPECT_FALSE(std::filesystem::exists(copy + ".part"));

  folder.file("fixed.json", "mine");
  const Finished refused = lint({warned, "--fix", copy});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("--overwrite"));
  EXPECT_EQ(text_of(copy), "mine");
  EXPECT_EQ(lint({warned, "--fix", warned}).exit_code, 3);
  EXPECT_EQ(text_of(warned), kOld);
  EXPECT_EQ(lint({warned, "--fix", warned, "--overwrite"}).exit_code, 0);
  EXPECT_THAT(text_of(warned),
              AllOf(HasSubstr("\"offload_optimizer\""), HasSubstr("\"steps_per_prin\": 10")));
}

TEST(LintFormats, AreTextJsonAndSarif) {
  const TemporaryFolder folder;
  const std::string file = folder.file("ds.json", kWarned);
  EXPECT_EQ(parse_json(lint({file, "--format", "json"}).out, "out")["schema"], "shardplan.lint/1");
  EXPECT_EQ(parse_json(lint({file, "--format", "sarif"}).out, "out")["version"], "2.1.0");
  EXPECT_THAT(lint({file}).out, HasSubstr("ds.unknown-key-ignored"));
  EXPECT_EQ(lint({file, "--format", "yaml"}).exit_code, 2);
}

TEST(LintBadInput, HugeAndDeepFilesAreRefusedWithAMessage) {
  const TemporaryFolder folder;
  const Finished huge =
      lint({folder.file("huge.json", "{\"a\": \"" + std::string(10'000'000, 'x') + "\"}")});
  EXPECT_EQ(huge.exit_code, 3);
  EXPECT_THAT(huge.err, HasSubstr("too large for a configuration"));
  std::string deep = "1";
  for (int i = 0; i < 1000; ++i) deep = "{\"a\": " + deep + "}";
  const Finished nested = lint({folder.file("deep.json", deep)});
  EXPECT_EQ(nested.exit_code, 3);
  EXPECT_THAT(nested.out, HasSubstr("json.too-deep"));
}

TEST(LintBadInput, GivesAMessageAndNeverCrashes) {
  const TemporaryFolder folder;
  for (const char* text :
       {"", "[]", "3", "null", "{", "{\"a\" 1}", "\xFF\xFE{}", "{\"zero_optimization\": []}",
        "{\"zero_optimization\": {\"stage\": 1e400}}",
        "{\"train_batch_size\": 99999999999999999999}",
        "{\"zero_optimization\": {\"stage\": 3, \"reduce_bucket_size\": 1e300}}"}) {
    const Finished f = lint({folder.file("x.json", text), "--model", "gpt2", "--gpus", "2xH100"});
    EXPECT_EQ(f.exit_code, 3) << text;
    EXPECT_FALSE((f.out + f.err).empty()) << text;
  }
}

TEST(LintBadInput, TrainersFilesAreNoDsConfig) {
  const TemporaryFolder folder;
  const std::string axolotl = folder.file("axolotl.yaml",
                                          "base_model: meta-llama/Llama-3.2-1B\n"
                                          "datasets:\n  - path: x\nmicro_batch_size: 2\n"
                                          "sequence_len: 2048\ndeepspeed: ds.json\n");
  const Finished f = lint({axolotl});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_THAT(f.out + f.err, AllOf(HasSubstr("axolotl"), HasSubstr("shardplan import")));
  EXPECT_THAT(f.out + f.err, ::testing::Not(HasSubstr("unknown key")));
}

TEST(LintCompanions, NameTheDsConfig) {
  const TemporaryFolder folder;
  folder.file("ds.json", kWarned);
  const std::string yaml = folder.file("a.yaml",
                                       "distributed_type: DEEPSPEED\nnum_processes: 8\n"
                                       "deepspeed_config:\n  deepspeed_config_file: ds.json\n");
  EXPECT_THAT(lint({"--accelerate", yaml}).out, HasSubstr("steps_per_prin"));
  const std::string arguments = folder.file(
      "t.json", R"({"deepspeed": "ds.json", "per_device_train_batch_size": 1, "bf16": true})");
  EXPECT_THAT(lint({"--training-arguments", arguments}).out, HasSubstr("steps_per_prin"));
}

}  // namespace
}  // namespace shardplan
