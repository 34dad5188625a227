// The command line as its users meet it: the built program, run as a child process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::cli_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Finished shardplan(const std::vector<std::string>& arguments, const std::string& env = "") {
  return run_program(SHARDPLAN_PROGRAM, arguments, env);
}

constexpr const char* kJob = R"({"schema": "shardplan.job/1", "model": {"model_type": "llama",
  "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4, "num_attention_heads": 8,
  "vocab_size": 1000}, "cluster": "4xA100-40GB",
  "framework": {"name": "deepspeed", "zero_stage": 2},
  "workload": {"micro_batch": 1, "sequence_length": 512}})";

Json json_of(const Finished& f) {
  EXPECT_EQ(f.err, "");
  return parse_json(f.out, "stdout");
}

TEST(ExitCodes, AreThoseOfTheContract) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  const std::string broken = folder.file("broken.json", "{\"model\": ");
  EXPECT_EQ(shardplan({"estimate", job}).exit_code, 0);
  EXPECT_EQ(shardplan({"fit", "llama-2-7b", "8xH100"}).exit_code, 0);
  EXPECT_EQ(shardplan({"--help"}).exit_code, 0);
  EXPECT_EQ(shardplan({"--version"}).exit_code, 0);

  EXPECT_EQ(shardplan({}).exit_code, 2);
  EXPECT_EQ(shardplan({"fit"}).exit_code, 2);
  EXPECT_EQ(shardplan({"fit", "llama-2-7b", "8xH100", "extra"}).exit_code, 2);
  EXPECT_EQ(shardplan({"estimate", job, "--format", "yaml"}).exit_code, 2);
  EXPECT_EQ(shardplan({"estimate", job, "--micro-bach", "2"}).exit_code, 2);

  EXPECT_EQ(shardplan({"estimate", broken}).exit_code, 3);
  EXPECT_EQ(shardplan({"estimate", folder.path("absent.json")}).exit_code, 3);
  EXPECT_EQ(shardplan({"fit", "lama-2-7b", "8xH100"}).exit_code, 3);
  EXPECT_EQ(shardplan({"fit", "llama-2-7b", "8xH1000"}).exit_code, 3);
  EXPECT_EQ(shardplan({"estimate", job, "--micro-batch", "many"}).exit_code, 3);

  EXPECT_EQ(shardplan({"fit", "llama-2-7b", "1xRTX4090"}).exit_code, 4);
  EXPECT_EQ(shardplan({"estimate", job, "--micro-batch", "1000000"}).exit_code, 4);
  EXPECT_EQ(shardplan({"max", "--model", "llama-2-70b", "--cluster", "1xRTX4090"}).exit_code, 4);
}

TEST(TrainersFiles, StandWhereverAJobDoes) {
  const std::string folder = SHARDPLAN_SOURCE_DIR "/configs/trainers/";
  const std::string arguments = folder + "trl-sft.yaml", fsdp = folder + "accelerate-fsdp2.yaml";
  const TemporaryFolder out;
  const std::string job = out.path("job.json");
  EXPECT_EQ(shardplan({"import", arguments, fsdp, "--cluster", "H100-80GB", "-o", job}).exit_code,
            0);
  const Finished from_job = shardplan({"estimate", job, "--format", "json"});
  const Finished direct =
      shardplan({"estimate", arguments, fsdp, "--cluster", "H100-80GB", "--format", "json"});
  EXPECT_EQ(from_job.out, direct.out);
  EXPECT_EQ(from_job.exit_code, 0);
  EXPECT_THAT(direct.err, HasSubstr("an accelerate configuration"));
  const Finished fit = shardplan({"fit", folder + "axolotl-qlora.yaml", "1xA100-80GB"});
  EXPECT_EQ(fit.exit_code, 0) << fit.err;
  EXPECT_THAT(fit.out, HasSubstr("base in 4 bits"));
  const Finished asks = shardplan({"import", arguments, fsdp});
  EXPECT_EQ(asks.exit_code, 3);
  EXPECT_THAT(asks.err, AllOf(HasSubstr("8 GPUs"), HasSubstr("--cluster 8x")));
}

TEST(Fit, TakesAWholeJobAndRefusesASecondCluster) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  EXPECT_EQ(shardplan({"fit", job}).out.substr(0, 40),
            shardplan({"estimate", job}).out.substr(0, 40));
  const Finished two = shardplan({"fit", job, "8xH100"});
  EXPECT_EQ(two.exit_code, 3);
  EXPECT_THAT(two.err, HasSubstr("--cluster 8xH100"));
  EXPECT_EQ(shardplan({"fit", "--model", "gpt2", "8xH100"}).out,
            shardplan({"fit", "gpt2", "8xH100"}).out);
  EXPECT_EQ(shardplan({"fit", "--model", "gpt2", "--cluster", "8xH100"}).out,
            shardplan({"fit", "gpt2", "8xH100"}).out);
  EXPECT_THAT(shardplan({"fit", "--cluster", "8xH100"}).err, HasSubstr("MODEL is required"));
  const std::string model = folder.file("config.json", R"({"model_type": "gpt2"})");
  EXPECT_THAT(shardplan({"fit", model}).err, HasSubstr("CLUSTER is required"));
  EXPECT_THAT(shardplan({"fit", "gpt2"}).err, HasSubstr("`shardplan table gpt2`"));
}

TEST(Fit, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const auto said = [&](const char* name, const std::string& text) {
    return shardplan({"fit", folder.file(name, text), "8xH100"}).err;
  };
  EXPECT_THAT(said("empty.yaml", "\n"), HasSubstr("is empty; expected JSON, YAML, TOML"));
  EXPECT_THAT(said("binary.json", std::string("{\"a\": \0\1}", 9)), HasSubstr("is a binary file"));
  EXPECT_THAT(
      said("latin.json", "{\n\"a\": \"caf\xE9\"}"),
      HasSubstr("line 2, column 10: is no text in UTF-8; expected UTF-8, and no byte 0xE9"));
  EXPECT_THAT(said("a.yaml", "base_model: gpt2\nmicro_batch_szie: 1\n"),
              HasSubstr("line 2, column 1: micro_batch_szie: unknown key"));
  EXPECT_THAT(said("model.safetensors", "x"), HasSubstr("has a model's weights"));
  EXPECT_THAT(shardplan({"fit", folder.path(""), "8xH100"}).err, HasSubstr("has no config.json"));
  EXPECT_THAT(shardplan({"fit", folder.path("binary.jso.json"), "8xH100"}).err,
              HasSubstr("there is no file"));
}

TEST(Program, TellsWhoNamesNoCommandWhichOneIsMeant) {
  EXPECT_THAT(shardplan({"gpt2", "8xH100"}).err, HasSubstr("did you mean 'fit gpt2'?"));
  const Finished alone = shardplan({});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.out, HasSubstr("estimate"));
}

/// Paths of a job start where it lies, whoever asks.
TEST(Fit, FindsTheFilesOfAJobInAnotherFolder) {
  const Finished found =
      shardplan({"fit", SHARDPLAN_SOURCE_DIR "/configs/jobs/llama-2-7b-zero3.json"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("FITS: llama-2-7b"));
}

/// The same job by flags is the same job: `max` took one that keeps all activations.
TEST(Max, TakesForGrantedWhatFitDoes) {
  const std::vector<std::string> flags{"max", "--model", "gpt2-xl", "--cluster", "1xRTX4090"};
  std::vector<std::string> said = flags;
  said.insert(said.end(), {"--checkpointing", "full"});
  const std::string usual = shardplan(flags).out, full = shardplan(said).out;
  EXPECT_EQ(usual.substr(0, full.size()), full);
  EXPECT_THAT(usual, HasSubstr("every block checkpointed"));
}

TEST(Fit, SaysThatABaseInFewBitsIsOne) {
  const Finished found = shardplan({"fit", "llama-3.1-8b", "1xRTX4090", "--method", "qlora"});
  EXPECT_THAT(found.out, HasSubstr("the weights themselves, most of them in few bits"));
}

TEST(Fit, RefusesAWordWhosePlaceAFlagHasTaken) {
  const TemporaryFolder folder;
  const std::string accelerate = folder.file(
      "acc.yaml", "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: bf16\n");
  const Finished file = shardplan({"fit", "gpt2", accelerate, "--cluster", "8xH100"});
  EXPECT_EQ(file.exit_code, 3);
  EXPECT_THAT(file.err, HasSubstr("fit " + accelerate + " --model gpt2 --cluster"));
  EXPECT_EQ(shardplan({"fit", accelerate, "--model", "gpt2", "--cluster", "8xH100"}).exit_code, 0);
  const Finished word = shardplan({"fit", "gpt2", "nonsense", "--cluster", "8xH100"});
  EXPECT_THAT(word.err, HasSubstr("found 'nonsense' beside --cluster"));
  const Finished models = shardplan({"fit", "gpt2", "8xH100", "--model", "bert-base-uncased"});
  EXPECT_THAT(models.err, HasSubstr("found 'gpt2' beside a flag that says the model"));
}

TEST(Model, IsReadFromStandardInputAndCountsAPerceptron) {
  const TemporaryFolder folder;
  const std::string config = folder.file("config.json", R"({"model_type": "gpt2"})");
  const Finished read = run_program(SHARDPLAN_PROGRAM, {"model", "-"}, "", "<" + config);
  EXPECT_THAT(read.out, HasSubstr("124,439,808 parameters"));
  EXPECT_THAT(shardplan({"model", "--mlp", "784,128,10"}).out, HasSubstr("101,770 parameters"));
  EXPECT_EQ(shardplan({"model"}).exit_code, 2);
}

TEST(Diagnostics, GoToStderrAndNameTheNearestSpelling) {
  const Finished command = shardplan({"fitt", "llama-2-7b", "8xH100"});
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_EQ(command.out, "");
  EXPECT_THAT(command.err, AllOf(HasSubstr("unknown command 'fitt'"), HasSubstr("estimate"),
                                 HasSubstr("did you mean 'fit'?")));
  const TemporaryFolder folder;
  const Finished key = shardplan({"estimate", folder.file("job.json", R"({"modle": "7B"})")});
  EXPECT_EQ(key.out, "");
  EXPECT_THAT(key.err, HasSubstr("job.json: cluster: missing"));
  const Finished position = shardplan({"estimate", folder.file("bad.json", "{\n  \"model\" 3}")});
  EXPECT_THAT(position.err, HasSubstr("bad.json: line 2, column 11"));
  const Finished flag = shardplan({"fit", "7B", "4x40GB", "--zero-stage", "two"});
  EXPECT_THAT(flag.err, AllOf(HasSubstr("--zero-stage"), HasSubstr("expected a number")));
}

class Help : public ::testing::TestWithParam<const char*> {};

TEST_P(Help, HasAWorkedExample) {
  const Finished f = shardplan({GetParam(), "--help"});
  EXPECT_EQ(f.exit_code, 0);
  EXPECT_THAT(f.out, HasSubstr("Example: shardplan " + std::string(GetParam())));
  EXPECT_THAT(f.out, AllOf(HasSubstr("--format"), HasSubstr("--output")));
}

INSTANTIATE_TEST_SUITE_P(Commands, Help,
                         ::testing::Values("fit", "model", "estimate", "compare", "max", "catalog",
                                           "search", "export", "import"),
                         [](const auto& command) { return std::string(command.param); });

TEST(Commands, AnswerInTextAndInJson) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  const std::vector<std::vector<std::string>> commands{{"fit", "llama-2-7b", "8xH100"},
                                                       {"fit", "7B", "4x80GB"},
                                                       {"model", "llama-2-7b"},
                                                       {"estimate", job},
                                                       {"compare", job},
                                                       {"max", job, "--of", "micro_batch"},
                                                       {"max", job, "--of", "sequence_length"},
                                                       {"max", job, "--of", "gpus"},
                                                       {"max", job, "--of", "parameters"},
                                                       {"catalog", "models"},
                                                       {"catalog", "gpus"}};
  for (std::vector<std::string> command : commands) {
    const Finished text = shardplan(command);
    EXPECT_EQ(text.err, "") << command[0];
    EXPECT_GT(text.out.size(), 20U) << command[0];
    command.insert(command.end(), {"--format", "json"});
    const Finished json = shardplan(command);
    EXPECT_EQ(json.exit_code, text.exit_code) << command[0];
    EXPECT_NO_THROW(static_cast<void>(parse_json(json.out, "stdout"))) << command[0];
  }
}

TEST(EstimateJson, HasEveryFieldOfTheContract) {
  const TemporaryFolder folder;
  const Json e =
      json_of(shardplan({"estimate", folder.file("job.json", kJob), "--format", "json"}));
  EXPECT_EQ(e.at("schema"), "shardplan.estimate/1");
  for (const char* field : {"/verdict/fits",
                            "/verdict/headroom_bytes",
                            "/verdict/limited_by",
                            "/model/parameters",
                            "/model/trainable_parameters",
                            "/model/tensors",
                            "/gpu/capacity_bytes",
                            "/gpu/usable_bytes",
                            "/gpu/peak/allocated/point",
                            "/gpu/peak/allocated/upper",
                            "/gpu/peak/reserved/point",
                            "/gpu/peak/reserved/upper",
                            "/gpu/peak/device/least",
                            "/gpu/peak/device/point",
                            "/gpu/peak/device/upper",
                            "/gpu/peak_phase",
                            "/gpu/phases/model",
                            "/gpu/phases/forward_peak",
                            "/gpu/phases/forward_end",
                            "/gpu/phases/backward_peak",
                            "/gpu/phases/backward_end",
                            "/gpu/phases/step_peak",
                            "/gpu/phases/step_end",
                            "/gpu/breakdown/0/category",
                            "/gpu/breakdown/0/resident_bytes",
                            "/gpu/breakdown/0/at_peak_bytes",
                            "/gpu/breakdown/0/source",
                            "/host/bytes_per_node",
                            "/host/pinned_bytes_per_node",
                            "/nvme/bytes_per_node",
                            "/traffic/0/what",
                            "/traffic/0/link",
                            "/traffic/0/bytes_per_step",
                            "/traffic/0/count",
                            "/time/step_seconds",
                            "/time/tokens_per_second",
                            "/time/mfu",
                            "/time/exposed_communication_seconds",
                            "/warnings"})
    EXPECT_TRUE(e.contains(Json::json_pointer(field))) << field;
  std::vector<std::string> categories;
  for (const Json& line : e.at("gpu").at("breakdown")) categories.push_back(line.at("category"));
  EXPECT_THAT(categories,
              ::testing::ElementsAre("parameters", "gradients", "master_parameters",
                                     "optimizer_states", "activations", "logits_and_loss",
                                     "gathered_parameters", "communication_buffers", "workspace",
                                     "fragmentation", "cuda_context", "nccl", "other"));
}

TEST(EstimateJson, TheBreakdownAtThePeakSumsToTheDevicesPeak) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  for (const char* stage : {"0", "1", "2", "3"}) {
    const Json e = json_of(shardplan({"estimate", job, "--zero-stage", stage, "--format", "json"}));
    std::int64_t sum = 0;
    for (const Json& line : e.at("gpu").at("breakdown"))
      sum += line.at("at_peak_bytes").get<std::int64_t>();
    EXPECT_EQ(sum, e.at("gpu").at("peak").at("device").at("point")) << stage;
  }
}

TEST(Flags, OverrideTheFile) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  Json changed = parse_json(kJob, "kJob");
  changed["workload"]["micro_batch"] = 4;
  changed["framework"]["zero_stage"] = 3;
  changed["checkpointing"] = "full";
  changed["optimizer"] = Json{{"name", "sgd"}, {"momentum", 0.9}};
  const std::string other = folder.file("other.json", changed.dump());
  const Finished flags =
      shardplan({"estimate", job, "--format", "json", "--micro-batch", "4", "--zero-stage", "3",
                 "--checkpointing", "full", "--optimizer", "sgd", "--momentum", "0.9"});
  EXPECT_EQ(flags.out, shardplan({"estimate", other, "--format", "json"}).out);
  EXPECT_NE(flags.out, shardplan({"estimate", job, "--format", "json"}).out);
}

TEST(JobFiles, KeepWhatTheySayIsNull) {
  const TemporaryFolder folder;
  Json job = parse_json(kJob, "kJob");
  job["model"] = {{"model_type", "deepseek_v2"}, {"hidden_size", 256},
                  {"num_hidden_layers", 2},      {"num_attention_heads", 8},
                  {"n_routed_experts", 4},       {"num_experts_per_tok", 2},
                  {"q_lora_rank", nullptr}};
  const auto parameters = [&](const Json& asked) {
    const std::string file = folder.file("deepseek.json", asked.dump());
    return json_of(shardplan({"estimate", file, "--format", "json"}))["model"]["parameters"]
        .get<std::int64_t>();
  };
  const std::int64_t without = parameters(job);
  job["model"].erase("q_lora_rank");  // the class's default: queries go through 1,536 numbers
  EXPECT_GT(parameters(job), without);
}

TEST(Flags, AloneMakeAJob) {
  const Finished f =
      shardplan({"estimate", "--model", "llama-2-7b", "--cluster", "8xH100", "--method", "lora",
                 "--lora-targets", "q_proj,v_proj", "--format", "json"});
  // 32 layers, rank 16, two adapters between 4096 and 4096.
  EXPECT_EQ(json_of(f).at("model").at("trainable_parameters"), 32 * 2 * 16 * (4096 + 4096));
}

/// The same job, however its model and cluster are said, and every answer says what it assumes.
TEST(WordsAndFlags, TakeForGrantedTheSame) {
  const std::vector<std::string> by_flags{"--model", "gpt2-xl", "--cluster", "1xRTX4090"};
  for (const std::vector<std::string>& command : {std::vector<std::string>{"estimate"},
                                                  {"compare"},
                                                  {"max", "--of", "micro_batch"},
                                                  {"simulate"}}) {
    const auto ask = [&](const std::vector<std::string>& job) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), job.begin(), job.end());
      return shardplan(arguments).out;
    };
    const std::string flags = ask(by_flags);
    EXPECT_EQ(ask({"gpt2-xl", "1xRTX4090"}), flags) << command.front();
    EXPECT_EQ(ask({"--model", "gpt2-xl", "1xRTX4090"}), flags) << command.front();
    const bool said = flags.find("checkpointing: full") != flags.npos ||
                      flags.find("every block checkpointed, as fit assumes") != flags.npos;
    EXPECT_TRUE(said) << flags;
  }
  const Finished twice =
      shardplan({"estimate", "gpt2", "--model", "gpt2-xl", "--cluster", "1xRTX4090"});
  EXPECT_EQ(twice.exit_code, 3);
  EXPECT_THAT(twice.err, HasSubstr("found 'gpt2' beside flags that say"));
}

TEST(Logs, AreNoConfiguration) {
  const TemporaryFolder folder;
  const std::string log = folder.file(
      "train.log",
      "Loading checkpoint shards: 100%|####| 4/4 [00:05<00:00,  1.35s/it]\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total "
      "capacity of 39.39 GiB of which 1.20 GiB is free.\n");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"lint", log},
                                                  {"estimate", log},
                                                  {"import", log},
                                                  {"report", log},
                                                  {"fit", log, "1xA100-40GB"}}) {
    const Finished refused = shardplan(command);
    EXPECT_EQ(refused.exit_code, 3) << command.front();
    EXPECT_THAT(refused.err, AllOf(HasSubstr(log), HasSubstr("stopped for want of GPU memory"),
                                   HasSubstr("shardplan fit MODEL CLUSTER")));
  }
}

TEST(Report, IsOfTrainersFilesToo) {
  const Finished page = shardplan(
      {"report", SHARDPLAN_SOURCE_DIR "/configs/trainers/trl-sft.yaml", "--cluster", "8xH100"});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("qwen2.5-7b"));
}

TEST(Answers, AreTheSameBytesEveryTimeAndInEveryLanguage) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  const std::vector<std::vector<std::string>> commands{{"estimate", job},
                                                       {"estimate", job, "--format", "json"},
                                                       {"fit", "llama-2-7b", "4xA100-40GB"},
                                                       {"compare", job}};
  for (const std::vector<std::string>& command : commands) {
    const Finished first = shardplan(command, "LC_ALL=C.UTF-8");
    EXPECT_EQ(first.out, shardplan(command, "LC_ALL=C.UTF-8").out);
    EXPECT_EQ(first.out, shardplan(command, "LC_ALL= LC_CTYPE= LANG=").out);
    EXPECT_EQ(first.out, shardplan(command, "LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8").out);
    EXPECT_EQ(first.out, shardplan(command, "LC_ALL=C.UTF-8 TZ=Asia/Tokyo").out);
  }
}

TEST(RelativePaths, StartAtTheJobsFolder) {
  const TemporaryFolder folder;
  folder.file("ds.json", R"({"zero_optimization": {"stage": 1}, "bf16": {"enabled": true},
                             "train_micro_batch_size_per_gpu": 3})");
  Json job = parse_json(kJob, "kJob");
  job["framework"] = Json{{"name", "deepspeed"}, {"ds_config", "ds.json"}};
  job["workload"].erase("micro_batch");
  EXPECT_EQ(shardplan({"estimate", folder.file("job.json", job.dump())}).exit_code, 0);
}

}  // namespace
}  // namespace shardplan::cli_test
