// `shardplan search` and `shardplan export` as their users meet them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::search_cli_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kJob = R"({"model": {"model_type": "llama", "hidden_size": 1024,
  "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16,
  "vocab_size": 32000}, "cluster": {"name": "4xA100-40GB", "price_per_hour": 8},
  "framework": "deepspeed", "workload": {"sequence_length": 1024}})";

const std::vector<std::string> kSmall{"--gpu-counts",
                                      "2,4",
                                      "--tensor-degrees",
                                      "1",
                                      "--micro-batches",
                                      "1,8",
                                      "--checkpointings",
                                      "none,full",
                                      "--reduce-buckets",
                                      "5e7",
                                      "--prefetch-buckets",
                                      "5e7",
                                      "--persistence-thresholds",
                                      "1e5"};

Finished search(const std::string& job, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"search", job};
  arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(SHARDPLAN_PROGRAM, arguments);
}

Json served(std::vector<std::string> more) {
  std::vector<std::string> arguments{"search", "--model", "llama-3.1-70b", "--cluster",
                                     "8xH100", "--serve", "--format",      "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished f = run_program(SHARDPLAN_PROGRAM, arguments);
  EXPECT_EQ(f.err, "");
  return Json::parse(f.out);
}

constexpr const char* kGrpo = R"({"model": "qwen2.5-1.5b", "cluster": "1xH100-SXM-80GB",
  "framework": "single", "precision": "bf16-pure", "checkpointing": "full", "trainer": "trl",
  "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 2, "gradient_accumulation": 2,
    "prompt_length": 512, "new_tokens": 512,
    "rollout": {"engine": "vllm", "gpu_memory_utilization": 0.02}}})";

TEST(SearchCommand, SaysWhatToWriteWhereAnEngineHasNoRoom) {
  const TemporaryFolder folder;
  const std::string job = folder.file("grpo.json", kGrpo);
  EXPECT_THAT(run_program(SHARDPLAN_PROGRAM, {"estimate", job}).err,
              HasSubstr("gpu_memory_utilization"));
  const Finished f = run_program(SHARDPLAN_PROGRAM, {"search", job});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, HasSubstr("the engine of the job as asked has no room"));
  EXPECT_THAT(f.out, HasSubstr("workload.rollout.gpu_memory_utilization: 0.0"));
  const Finished other = run_program(SHARDPLAN_PROGRAM, {"search", job, "--zero-stages", "2"});
  EXPECT_THAT(other.err, HasSubstr("--zero-stages: is not searched of reinforcement learning"));
}

TEST(SearchCommand, PutsTheCheapestEngineFirst) {
  const Json cheapest = served({});
  ASSERT_GE(cheapest.size(), 3U);
  for (std::size_t i = 1; i < cheapest.size(); ++i)
    EXPECT_LE(cheapest[i - 1]["dollars_per_million_tokens"],
              cheapest[i]["dollars_per_million_tokens"]);
  EXPECT_NE(cheapest[0]["tensor_parallel"], 1);  // 70 B parameters are more than one GPU holds
  const Json few = served({"--objective", "gpus"});
  EXPECT_EQ(few[0]["tensor_parallel"], 2);
  const Json quick = served({"--max-step-seconds", "0.03"});
  ASSERT_FALSE(quick.empty());
  for (const Json& choice : quick) EXPECT_GE(choice["tokens_per_second_of_a_sequence"], 1 / 0.03);
  EXPECT_EQ(served({"--tensor-degrees", "4"}).size(), 1U);
}

/// Of a model that no single GPU holds, over as many GPUs as serve best; of several models the
/// micro-batch, each with the batches that follow from it.
TEST(MaxCommand, AnswersForEnginesAndForSeveralModels) {
  const Finished served = run_program(
      SHARDPLAN_PROGRAM,
      {"max", "--model", "llama-3.1-70b", "--cluster", "8xH100", "--serve", "--of", "concurrency"});
  EXPECT_EQ(served.exit_code, 0);
  EXPECT_THAT(served.out, HasSubstr("with engines over 4 GPUs each"));
  const std::string job = SHARDPLAN_SOURCE_DIR "/configs/jobs/qwen2.5-1.5b-grpo.json";
  const Json most = Json::parse(
      run_program(SHARDPLAN_PROGRAM, {"max", job, "--of", "micro_batch", "--format", "json"}).out);
  const auto fits = [&](std::int64_t micro_batch) {
    return run_program(SHARDPLAN_PROGRAM,
                       {"estimate", job, "--micro-batch", std::to_string(micro_batch)})
               .exit_code == 0;
  };
  EXPECT_TRUE(fits(most["value"].get<std::int64_t>()));
  EXPECT_FALSE(fits(most["value"].get<std::int64_t>() + 1));
}

TEST(SearchCommand, RefusesWhatAnEngineHasNot) {
  const Finished f =
      run_program(SHARDPLAN_PROGRAM, {"search", "--model", "llama-3.1-8b", "--cluster", "8xH100",
                                      "--serve", "--zero-stages", "1"});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_THAT(f.err, AllOf(HasSubstr("--zero-stages"), HasSubstr("--tensor-degrees")));
}

TEST(SearchCommand, SaysThePlanTheFrontAndWhatBecameOfTheRest) {
  const TemporaryFolder folder;
  const Finished f = search(folder.file("job.json", kJob));
  EXPECT_EQ(f.exit_code, 0);
  EXPECT_EQ(f.err, "");
  EXPECT_THAT(f.out, AllOf(HasSubstr("The fastest plan that fits, of 128\n"),
                           HasSubstr("Plans that no other beats in time, memory and GPUs at once"),
                           HasSubstr("What became of every candidate"),
                           HasSubstr("DeepSpeed offloads the optimizer from ZeRO stage 1 on"),
                           HasSubstr("GPU-hours for a billion tokens, which cost")));
}

TEST(SearchCommand, GivesTheSameBytesWithAnyNumberOfThreads) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  const Finished one = search(job, {"--threads", "1", "--format", "json"});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(one.out, search(job, {"--threads", "5", "--format", "json"}).out);
  const Json json = parse_json(one.out, "stdout");
  std::int64_t sum = static_cast<std::int64_t>(json.at("front").size());
  for (const Json& rule : json.at("ruled_out")) sum += rule.at("count").get<std::int64_t>();
  EXPECT_EQ(sum, json.at("candidates"));
  EXPECT_EQ(json.at("best").at("estimate").at("verdict").at("fits"), true);
  EXPECT_GT(json.at("best").at("cost").at("money_per_billion_tokens"), 0);
}

TEST(SearchCommand, KeepsWhatAFlagOfTheJobSays) {
  const TemporaryFolder folder;
  const Finished f =
      search(folder.file("job.json", kJob), {"--zero-stage", "2", "--format", "json"});
  for (const Json& plan : parse_json(f.out, "stdout").at("front"))
    EXPECT_EQ(plan.at("values").at("strategy"), "ZeRO-2");
}

TEST(SearchCommand, ExitsWithFourWhenNothingFits) {
  const TemporaryFolder folder;
  const Finished small = search(folder.file("job.json", kJob),
                                {"--zero-stage", "0", "--gpu-memory-bytes", "4000000000"});
  EXPECT_EQ(small.exit_code, 4);
  EXPECT_THAT(small.out,
              AllOf(HasSubstr("Nothing fits of"), HasSubstr("The one that comes closest"),
                    HasSubstr("What would change its verdict"), HasSubstr("saves")));
}

struct Bad {
  const char* name;
  std::vector<std::string> flags;
  const char* says;
};

class BadInput : public ::testing::TestWithParam<Bad> {};

TEST_P(BadInput, IsNamed) {
  const TemporaryFolder folder;
  const Finished f = search(folder.file("job.json", kJob), GetParam().flags);
  EXPECT_NE(f.exit_code, 0);
  EXPECT_EQ(f.out, "");
  EXPECT_THAT(f.err, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadInput,
    ::testing::Values(
        Bad{"Framework", {"--frameworks", "deepsped"}, "did you mean 'deepspeed'?"},
        Bad{"Precision", {"--precisions", "bf16-mastr"}, "did you mean 'bf16-master'?"},
        Bad{"Objective", {"--objective", "throughputs"}, "did you mean 'throughput'?"},
        Bad{"Time", {"--objective", "tim"}, "did you mean 'time'?"},
        Bad{"Stage", {"--zero-stages", "2,5"}, "unknown value '5'"},
        Bad{"Twice",
            {"--zero-stage", "2", "--zero-stages", "3"},
            "--zero-stages and --zero-stage: contradict each other"},
        Bad{"Days", {"--max-days", "3"}, "--max-days and --tokens: contradict each other"},
        Bad{"Memory",
            {"--gpu-memory-bytes", "99999999999999"},
            "--gpu-memory-bytes and --cluster: contradict each other"},
        Bad{"Batch",
            {"--global-batch", "3"},
            "--micro-batches and --global-batch: contradict each other"},
        Bad{"Offload",
            {"--zero-stages", "1", "--parameter-offloads", "cpu"},
            "--parameter-offloads and --frameworks/--zero-stages: contradict each other"},
        Bad{"Number", {"--max-step-seconds", "-1"}, "found '-1'; expected a positive number"},
        Bad{"List", {"--accumulations", "1,two"}, "found 'two'"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(SearchCommand, ExportsAPlanThatEstimatesTheSame) {
  const TemporaryFolder folder;
  const Finished f =
      search(folder.file("job.json", kJob), {"--export", folder.path("plan"), "--format", "json"});
  EXPECT_EQ(f.exit_code, 0);
  EXPECT_THAT(f.err, HasSubstr("ds_config.json"));
  const Json best = parse_json(f.out, "stdout").at("best").at("estimate");
  const Finished again = run_program(
      SHARDPLAN_PROGRAM, {"estimate", folder.path("plan/job.json"), "--format", "json"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  const Json e = parse_json(again.out, "stdout");
  for (const char* part : {"verdict", "gpu", "host", "nvme", "traffic", "time"})
    EXPECT_EQ(e.at(part), best.at(part)) << part;
  EXPECT_THAT(text_of(folder.path("plan/launch.sh")), HasSubstr("exec deepspeed --num_gpus"));
  EXPECT_EQ(std::system(("bash -n " + folder.path("plan/launch.sh")).c_str()), 0);
}

TEST(ExportCommand, WritesOneFormatOrAllThatFit) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  const Finished one = run_program(SHARDPLAN_PROGRAM, {"export", job, "--as", "ds_config"});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(parse_json(one.out, "stdout").at("zero_optimization").at("stage"), 3);
  EXPECT_EQ(run_program(SHARDPLAN_PROGRAM, {"export", job, "--as", "fsdp2"}).exit_code, 3);
  const Finished all = run_program(
      SHARDPLAN_PROGRAM, {"export", job, "--framework", "fsdp2", "--to", folder.path("out")});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path("out/fsdp2.py")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/ds_config.json")));
}

TEST(CostLines, AreInEstimateAndFit) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob);
  const Finished text = run_program(
      SHARDPLAN_PROGRAM, {"estimate", job, "--tokens", "1e12", "--price-per-gpu-hour", "2.5"});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("GPU-hours for a billion tokens"), HasSubstr("at 10 an hour"),
                    HasSubstr("1.00 T tokens:"), HasSubstr("kWh")));
  const Finished fit = run_program(
      SHARDPLAN_PROGRAM, {"fit", "llama-2-7b", "8xH100", "--tokens", "1e9", "--format", "json"});
  const Json cost = parse_json(fit.out, "stdout").at("cost");
  EXPECT_NEAR(cost.at("days").get<double>() * 86'400,
              cost.at("seconds_per_billion_tokens").get<double>(), 1e-6);
  // The list price of a machine with eight of them, named with its day.
  EXPECT_EQ(cost.at("list_price").at("machine"), "p5.48xlarge");
  EXPECT_NEAR(cost.at("money").get<double>(),
              cost.at("days").get<double>() * 24 * cost.at("price_per_hour").get<double>(), 1e-6);
  EXPECT_TRUE(cost.at("spot_money").is_null());
  const Finished said = run_program(SHARDPLAN_PROGRAM, {"fit", "llama-2-7b", "8xH100", "--tokens",
                                                        "15T", "--price", "20", "--spot-price=9"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("15.0 T tokens: "), HasSubstr(" on demand, "),
                              HasSubstr(" on spot"), Not(HasSubstr("list price"))));
}

TEST(CostLines, ListPricesAreSaidOnlyWhereARunIsAsked) {
  const Finished plain = run_program(SHARDPLAN_PROGRAM, {"fit", "llama-2-7b", "p5.48xlarge"});
  EXPECT_THAT(plain.out, Not(HasSubstr("$")));
  const Finished asked =
      run_program(SHARDPLAN_PROGRAM, {"fit", "llama-2-7b", "p5.48xlarge", "--tokens", "300B"});
  EXPECT_THAT(asked.out,
              AllOf(HasSubstr("$"), HasSubstr("list price of AWS p5.48xlarge, us-east-1, 20"),
                    HasSubstr("a checkpoint: "), HasSubstr("goodput ")));
  const Finished bad =
      run_program(SHARDPLAN_PROGRAM, {"fit", "llama-2-7b", "p5.48xlarge", "--tokens", "many"});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("--tokens"), HasSubstr("many")));
}

/// Plain PyTorch keeps 8 B parameters' states on the GPU, where they do not fit.
TEST(Search, OfOneGpuTriesOffloadsWhereNothingElseFits) {
  const std::vector<std::string> asked{"search", "llama-3.1-8b",     "1xH100", "--micro-batches",
                                       "1",      "--checkpointings", "full",   "--reduce-buckets",
                                       "5e7"};
  const Finished f = run_program(SHARDPLAN_PROGRAM, asked);
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("optimizer on the host"), HasSubstr("DeepSpeed")));
  std::vector<std::string> said = asked;
  said.insert(said.end(), {"--framework", "single"});
  EXPECT_EQ(run_program(SHARDPLAN_PROGRAM, said).exit_code, 4);
}

}  // namespace
}  // namespace shardplan::search_cli_test
