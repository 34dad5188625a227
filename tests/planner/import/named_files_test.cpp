// Commands that name a configuration: where it is found, and what counts of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "import_testing.h"

namespace shardplan::importing::named_files_test {
namespace {

namespace fs = std::filesystem;

class NamedFiles : public testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    // Tests run side by side.
    const char* test = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(testing::TempDir()) / "shardplan-named-files" / test;
    fs::create_directories(folder_ / "configs");
    fs::create_directories(folder_ / "jobs" / "deep");
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  Imported imported(const std::string& file) const {
    return import_files({(folder_ / file).string()}, "", {{"cluster", "8xH100"}});
  }

  fs::path folder_, before_;
};

constexpr const char* kLlamaFactory =
    "model_name_or_path: gpt2\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
    "template: default\ncutoff_len: 512\nper_device_train_batch_size: 1\nbf16: true\n";

// OmegaConf merges the command line over the file (LLaMA-Factory, hparams/parser.py, read_args).
TEST_F(NamedFiles, ArgumentsOfTheCommandCountBeforeTheFile) {
  write("configs/sft.yaml", kLlamaFactory);
  write("run.sh",
        "#!/bin/bash\nN=4\ntorchrun src/train.py configs/sft.yaml \\\n"
        "  per_device_train_batch_size=\"${N}\" cutoff_len=1024\n");
  const Imported job = imported("run.sh");
  EXPECT_EQ(job.job.at("workload").at("micro_batch"), 4);
  EXPECT_EQ(job.job.at("workload").at("sequence_length"), 1024);
  EXPECT_EQ(job.origins.at("/workload/micro_batch").file, (folder_ / "run.sh").string());
}

TEST_F(NamedFiles, AVariableThatNobodySetsIsNoValueOfTheFile) {
  write("configs/sft.yaml", kLlamaFactory);
  write("run.sh", "#!/bin/bash\ntorchrun src/train.py configs/sft.yaml cutoff_len=\"$1\"\n");
  try {
    imported("run.sh");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("run.sh"));
    EXPECT_THAT(error.what(), testing::HasSubstr("expected --sequence-length"));
  }
}

/// The file that a script names was left behind: the flag says where it is.
TEST_F(NamedFiles, AFlagSaysWhichDsConfig) {
  write("ds.json", R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"},
                       "train_micro_batch_size_per_gpu": "auto"})");
  const auto stage = [&](const char* how) {
    write("run.sh", std::string("deepspeed train.py --model_name_or_path gpt2 --bf16 ") +
                        "--per_device_train_batch_size 2 --output_dir out " + how + "\n");
    const Json flags{{"cluster", "8xH100"},
                     {"framework", {{"ds_config", (folder_ / "ds.json").string()}}}};
    const Json job = import_files({(folder_ / "run.sh").string()}, "", flags).job;
    EXPECT_EQ(job.at("precision"), "bf16-master");
    return job.at("framework").at("name");
  };
  EXPECT_EQ(stage("--deepspeed left/behind.json"), "deepspeed");
  EXPECT_EQ(stage("--deepspeed --deepspeed_config left/behind.json"), "deepspeed");
  EXPECT_EQ(stage("--deepspeed"), "deepspeed");
}

/// What a manifest's command says has no line in the file (they all had line 1).
TEST_F(NamedFiles, ACommandWithinAManifestHasNoLines) {
  write("job.yaml",
        "kind: Job\nspec:\n  template:\n    command: [torchrun, train.py]\n"
        "    args: [--model_name_or_path, gpt2, --per_device_train_batch_size, '2', "
        "--output_dir, out]\n");
  const Imported job = imported("job.yaml");
  EXPECT_EQ(job.job.at("workload").at("micro_batch"), 2);
  EXPECT_EQ(job.origins.at("/workload/micro_batch").line, 0);
}

TEST_F(NamedFiles, AreFoundFromAFolderBelow) {
  write("configs/sft.yaml", kLlamaFactory);
  write("jobs/deep/run.sh", "#!/bin/bash\nllamafactory-cli train configs/sft.yaml\n");
  fs::current_path(folder_ / "jobs" / "deep");
  const Imported job = import_files({"run.sh"}, "", {{"cluster", "8xH100"}});
  EXPECT_EQ(job.job.at("workload").at("sequence_length"), 512);
}

// dstack and SkyPilot have lines, Kubernetes words.
TEST_F(NamedFiles, OfAFileThatStartsJobsItsProgramsAreRead) {
  const std::string arguments =
      "--model_name_or_path gpt2 --per_device_train_batch_size $BATCH --max_length 256 --bf16 "
      "--output_dir out";
  write("task.yml",
        "type: task\nenv: [HF_TOKEN, BATCH=3]\ncommands:\n  - pip install trl\n"
        "  - accelerate launch sft.py " +
            arguments + "\nresources: {gpu: H100}\n");
  write("pod.yaml",
        "kind: Job\nspec:\n  containers:\n  - env: [{name: BATCH, value: \"5\"}]\n"
        "    command: [torchrun, --nproc_per_node=8, sft.py]\n"
        "    args: [--model_name_or_path, gpt2, --per_device_train_batch_size, \"4\", "
        "--max_length, \"256\", --bf16, --output_dir, out]\n");
  EXPECT_EQ(imported("task.yml").job.at("workload").at("micro_batch"), 3);
  EXPECT_EQ(imported("pod.yaml").job.at("workload").at("micro_batch"), 4);
}

// An estimate by 1 sequence or 2048 tokens would say that too much fits.
TEST(UnsetArguments, ThatMemoryDependsOnAreAsked) {
  const std::string script =
      "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
      "--vocab-size 32000 --seq-length 512 --bf16 --micro-batch-size $1\n";
  EXPECT_THAT(error_of(script), testing::HasSubstr("micro_batch_size: its value is a variable that "
                                                   "the script does not set; expected "
                                                   "--micro-batch"));
  const Json flags{{"cluster", "8xH100"}, {"workload", {{"micro_batch", 2}}}};
  EXPECT_EQ(import_text(script, flags).job.at("workload").at("sequence_length"), 512);
}

TEST(UnreadTrainers, AreNamed) {
  const auto refused = [](const char* text) { return error_of(text); };
  EXPECT_THAT(refused("pipe-parallel-size: 1\nnum-layers: 16\ntrain_micro_batch_size_per_gpu: 4\n"),
              testing::HasSubstr("a file of GPT-NeoX"));
  EXPECT_THAT(refused("type: sft\nmodel: {name_or_path: gpt2}\ndata: {sources: [a]}\n"
                      "deepspeed: {zero_optimization: {stage: 3}}\n"),
              testing::HasSubstr("a file of ArcticTraining"));
  EXPECT_THAT(refused("max_steps = 5\n[model]\nname = \"gpt2\"\n[data]\nseq_len = 8\n"
                      "[optim]\nlr = 1e-4\n"),
              testing::HasSubstr("a file of prime-rl"));
  EXPECT_THAT(refused("torchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 "
                      "--num-attention-heads 8 --vocab-size 32000 --seq-length 512 "
                      "--micro-batch-size 1 --deepspeed --zero-stage 3\n"),
              testing::HasSubstr("DeepSpeed's engine runs this step"));
  EXPECT_THAT(refused("model_name_or_path: gpt2\ntemplate: llama3\ninfer_backend: vllm\n"),
              testing::HasSubstr("trains nothing"));
}

// A script is started from the folder above it, where the file lies.
TEST_F(NamedFiles, AConfigurationWithoutAFolderIsLookedForAbove) {
  write("zero1.json", R"({"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}})");
  write("jobs/deep/run.sh",
        "torchrun train.py --model_name_or_path gpt2 --per_device_train_batch_size 1 "
        "--deepspeed \"zero1.json\"\n");
  EXPECT_EQ(imported("jobs/deep/run.sh").job.at("framework").at("name"), "deepspeed");
}

// ROOT=$(git rev-parse ...): only the shell knows it.
TEST_F(NamedFiles, AFolderOfAnUnknownOneIsLookedForAbove) {
  write("configs/zero1.json", R"({"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}})");
  write("jobs/deep/run.sh",
        "ROOT=$(pwd)/..\ntorchrun train.py --model_name_or_path gpt2 "
        "--per_device_train_batch_size 1 --deepspeed ${ROOT}/configs/zero1.json\n");
  EXPECT_EQ(imported("jobs/deep/run.sh").job.at("framework").at("name"), "deepspeed");
}

TEST_F(NamedFiles, AModelsNameIsNoFolderAbove) {
  fs::create_directories(folder_ / "gpt2");
  write("gpt2/config.json", "{}");
  write("jobs/deep/run.sh",
        "torchrun train.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --bf16\n");
  EXPECT_EQ(imported("jobs/deep/run.sh").job.at("model"), "gpt2");
}

// axolotl's files name its own folder, as its image has it.
TEST_F(NamedFiles, AConfigurationThatATrainerShipsIsKnown) {
  write("a.yaml",
        "base_model: gpt2\nmicro_batch_size: 1\nsequence_len: 512\nbf16: true\n"
        "deepspeed: /workspace/axolotl/deepspeed_configs/zero2.json\n");
  const Imported job = imported("a.yaml");
  const Json& zero = job.job.at("framework").at("ds_config").at("zero_optimization");
  EXPECT_EQ(zero.at("stage"), 2);
  EXPECT_EQ(zero.at("offload_optimizer").at("device"), "cpu");
  EXPECT_TRUE(noted(job, Note::Kind::assumed, "deepspeed"));
}

}  // namespace
}  // namespace shardplan::importing::named_files_test
