// Several files as one job; what is missing, unknown or contradictory.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "import_testing.h"

#include "import/command_line.h"

namespace shardplan::importing {
namespace {

std::vector<Document> both(std::string_view first, std::string_view second) {
  std::vector<Document> documents = parse_documents(first, "a");
  for (Document& more : parse_documents(second, "b")) documents.push_back(std::move(more));
  return documents;
}

constexpr std::string_view kArguments =
    "model_name_or_path: gpt2\nper_device_train_batch_size: 2\noutput_dir: out\nbf16: true\n";
constexpr std::string_view kFsdp =
    "distributed_type: FSDP\nnum_processes: 4\nmixed_precision: bf16\n"
    "fsdp_config: {fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n";

TEST(Import, SeveralFilesAreOneJob) {
  const Imported imported = import_documents(both(kArguments, kFsdp), "", {{"cluster", "4xH100"}});
  EXPECT_EQ(imported.job.at("framework").at("name"), "fsdp1");
  EXPECT_EQ(imported.job.at("workload").at("micro_batch"), 2);
  EXPECT_EQ(imported.headings.size(), 2U);
}

TEST(Import, AHostfileCountsTheGpus) {
  const Imported imported = import_documents(both(kArguments, "one slots=8\ntwo slots=8\n"), "",
                                             {{"cluster", "A100-80GB"}});
  EXPECT_EQ(imported.job.at("cluster"), "2x8xA100-80GB");
}

TEST(Import, TwoFilesMayNotDisagree) {
  try {
    import_documents(both(kArguments, R"({"per_device_train_batch_size": 4, "output_dir": "o"})"),
                     "", {{"cluster", "4xH100"}});
    FAIL();
  } catch (const InputError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("per_device_train_batch_size"), std::string::npos) << what;
    EXPECT_NE(what.find("the same in both files"), std::string::npos) << what;
  }
}

TEST(Import, WhatIsMissingNamesTheFlag) {
  EXPECT_NE(error_of(kArguments, Json::object()).find("--cluster"), std::string::npos);
  const std::string count = error_of(std::string(kFsdp), {{"model", "gpt2"}});
  EXPECT_NE(count.find("4 GPUs"), std::string::npos) << count;
  EXPECT_NE(error_of("distributed_type: MULTI_GPU\n").find("--model"), std::string::npos);
}

TEST(Import, AMisspeltKeyIsRefusedWithTheOneThatWasMeant) {
  const std::string error =
      error_of("base_model: gpt2\ndatasets: []\nmicro_batch_sise: 4\nbf16: true\n");
  EXPECT_NE(error.find("micro_batch_sise"), std::string::npos) << error;
  EXPECT_NE(error.find("did you mean 'micro_batch_size'?"), std::string::npos) << error;
  EXPECT_NE(error.find("line 3"), std::string::npos) << error;
}

TEST(Import, FilesToStartFromAreRead) {
  const std::string folder = SHARDPLAN_SOURCE_DIR "/configs/trainers/";
  const Json alone =
      import_files({folder + "axolotl-qlora.yaml"}, "", {{"cluster", "1xRTX4090"}}).job;
  EXPECT_EQ(alone.at("workload").at("lora").at("quantization"), "nf4_double");
  const Json two = import_files({folder + "trl-sft.yaml", folder + "accelerate-fsdp2.yaml"}, "",
                                {{"cluster", "H100-80GB"}})
                       .job;
  EXPECT_EQ(two.at("cluster"), "1x8xH100-80GB");
  EXPECT_EQ(two.at("framework").at("name"), "fsdp2");
  EXPECT_EQ(two.at("precision"), "bf16-autocast");
}

/// Said from a folder above, as scripts that are started there do, or behind a shell's own folder.
TEST(Import, FilesAreFoundFromFoldersAbove) {
  const std::string file = SHARDPLAN_SOURCE_DIR "/configs/trainers/axolotl-qlora.yaml";
  const std::string job = "configs/jobs/llama-2-7b-zero3.json";
  // In the folder of the sources it is found as it is said.
  EXPECT_TRUE(std::filesystem::equivalent(resolved_path(job, file),
                                          std::string(SHARDPLAN_SOURCE_DIR "/") + job));
  EXPECT_EQ(resolved_path("/trl-sft.yaml", file),
            SHARDPLAN_SOURCE_DIR "/configs/trainers/trl-sft.yaml");
  EXPECT_EQ(resolved_path("configs/jobs/none.json", file), "");
  EXPECT_EQ(resolved_path("README.md-of-nobody", file), "");
}

TEST(Import, UnknownKeysAreListed) {
  const Imported imported =
      import_text("base_model: gpt2\ndatasets: []\nbf16: true\nnobody_knows_this: 3\n");
  EXPECT_TRUE(noted(imported, Note::Kind::unknown, "nobody_knows_this"));
}

TEST(Import, ANumberBehindAKeyIsNoWrongSpelling) {
  const Imported imported = import_text(std::string(kArguments) + "beta1: 0.9\n");
  EXPECT_TRUE(noted(imported, Note::Kind::unknown, "beta1"));
}

TEST(Import, WrongTypesNameFileAndKey) {
  const std::string error = error_of("base_model: gpt2\ndatasets: []\nmicro_batch_size: many\n");
  EXPECT_NE(error.find("file: line 3, column 1: micro_batch_size"), std::string::npos) << error;
}

TEST(Import, AnErrorAboutAFieldNamesTheKeyThatSaidIt) {
  Imported imported = import_text(kArguments);
  const InputError error(
      {.file = "job.json", .key = "workload.micro_batch", .message = "too much"});
  const std::string what = explained(error, imported).what();
  EXPECT_NE(what.find("per_device_train_batch_size (workload.micro_batch)"), std::string::npos)
      << what;
}

TEST(Import, AFileOfNoKindIsRefused) {
  EXPECT_NE(error_of("apples: 3\npears: 4\n").find("of no kind that is known"), std::string::npos);
}

TEST(Import, FilesOfSwiftAreItsCommands) {
  const Json job = job_of(
      "torchrun --nproc_per_node 8 swift/cli/sft.py --model gpt2 --tuner_type full "
      "--per_device_train_batch_size 2 --deepspeed zero3\n");
  EXPECT_EQ(job["framework"]["name"], "deepspeed");
  EXPECT_EQ(job["workload"]["gradient_accumulation"], 1) << "16 sequences over 8 GPUs of 2";
}

TEST(Import, TheFirstTrainingProgramOfAScriptCounts) {
  const Imported imported = import_text(
      "pip install x\nswift sft --model gpt2 --tuner_type full --per_device_train_batch_size 2\n"
      "swift sft --model gpt2 --tuner_type full --per_device_train_batch_size 9\n");
  EXPECT_EQ(imported.job.at("workload").at("micro_batch"), 2);
  EXPECT_TRUE(noted(imported, Note::Kind::warning, "script"));
}

std::vector<std::string> words(std::string_view script) {
  std::vector<std::string> out;
  for (const Command& command : parse_shell(script))
    for (const Word& word : command.words) out.push_back(word.text);
  return out;
}

TEST(Shell, VariablesArraysAndSumsAreReplaced) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("A=3\nB=(x \"y z\")\nrun $A ${B[@]} \"${B[@]}\" $((A * 2 + 1))"),
            (Words{"run", "3", "x", "y", "z", "x", "y z", "7"}));
  EXPECT_EQ(words("run ${NONE:-7} '$A' \"q r\"; next # no"),
            (Words{"run", "7", "$A", "q r", "next"}));
  EXPECT_EQ(words("N=4\nrun --x $(expr 16 / $N) \\\n  --y"), (Words{"run", "--x", "4", "--y"}));
  EXPECT_EQ(words("A=(1\n  2 # two\n)\nA+=(3)\nrun \"${A[*]}\" $1"), (Words{"run", "1", "2", "3"}));
  EXPECT_EQ(words(": \"${A:=4}\"\nrun $A"), (Words{":", "4", "run", "4"}));
  EXPECT_EQ(words("declare -a A=(1 2)\nlocal -r B=3\nrun \"${A[@]}\" $B"),
            (Words{"run", "1", "2", "3"}));
}

TEST(Shell, OddTextIsNoHarm) {
  for (const char* text : {"", "$", "${", "$((", "`", "'", "\"", "\\", "A=(", "A=", "$(",
                           "${A:-${B", "--", "a=\"$", ")))", "&&|;<>"})
    parse_shell(text);
}

TEST(Import, AFileNestedTooDeeplyIsLeftToTheReaderOfJobs) {
  const std::string path = testing::TempDir() + "/deep.json";
  constexpr int kLevels = 100000;
  std::ofstream file(path);
  for (int i = 0; i < kLevels; ++i) file << "{\"a\":";
  file << 1 << std::string(kLevels, '}');
  file.close();
  EXPECT_TRUE(is_own_job(path));
}

}  // namespace
}  // namespace shardplan::importing
