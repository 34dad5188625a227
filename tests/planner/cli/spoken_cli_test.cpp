// Words that people type: each answers as the word that jobs have for it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::spoken_cli_test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Finished shardplan(const Words& arguments) {
  return run_program(SHARDPLAN_PROGRAM, arguments, "");
}

/// What `fit qwen2.5-0.5b 4xA100-40GB` answers with these flags, but for fixes: --bf16 says a type
/// alone, of which a fix to QLoRA takes the usual preset.
Json answer(const Words& flags) {
  Words arguments{"fit", "qwen2.5-0.5b", "4xA100-40GB", "--format", "json"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Finished finished = shardplan(arguments);
  EXPECT_EQ(finished.err, "");
  Json answered = Json::parse(finished.out, nullptr, false);
  answered.erase("fixes");
  return answered;
}

struct SpokenCase {
  Words spoken, written;
};

class Spoken : public ::testing::TestWithParam<SpokenCase> {};

TEST_P(Spoken, AnswersAsWhatItStandsFor) {
  EXPECT_EQ(answer(GetParam().spoken), answer(GetParam().written));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, Spoken,
    ::testing::Values(SpokenCase{{"--zero", "2"}, {"--zero-stage", "2"}},
                      SpokenCase{{"--zero_stage=2"}, {"--zero-stage", "2"}},
                      SpokenCase{{"--seq-len", "512"}, {"--sequence-length", "512"}},
                      SpokenCase{{"--max_seq_length", "512"}, {"--sequence-length", "512"}},
                      SpokenCase{{"--per_device_train_batch_size", "4"}, {"--micro-batch", "4"}},
                      SpokenCase{{"--grad_accum", "4"}, {"--gradient-accumulation", "4"}},
                      SpokenCase{{"--tp", "2", "--framework", "megatron"},
                                 {"--tensor-parallel", "2", "--framework", "megatron"}},
                      SpokenCase{{"--bf16"}, {"--precision", "bf16-master"}},
                      SpokenCase{{"--bf16", "true", "--fp16", "false"},
                                 {"--precision", "bf16-master"}},
                      SpokenCase{{"--bf16", "--framework", "fsdp"},
                                 {"--precision", "bf16-autocast", "--framework", "fsdp2"}},
                      SpokenCase{{"--dtype", "float16"}, {"--precision", "fp16-master"}},
                      SpokenCase{{"--fp32"}, {"--precision", "fp32"}},
                      SpokenCase{{"--gradient_checkpointing"}, {"--checkpointing", "full"}},
                      SpokenCase{{"--packing"}, {"--packing", "true"}},
                      SpokenCase{{"--offload", "host"}, {"--offload-optimizer", "cpu"}}));

INSTANTIATE_TEST_SUITE_P(
    Values, Spoken,
    ::testing::Values(
        SpokenCase{{"--attention", "flash_attention_2"}, {"--sdpa-kernel", "flash_attn"}},
        SpokenCase{{"--attn-implementation", "FA2"}, {"--sdpa-kernel", "flash_attn"}},
        SpokenCase{{"--use-flash-attention-2"}, {"--sdpa-kernel", "flash_attn"}},
        SpokenCase{{"--optimizer", "adamw_torch_fused"},
                   {"--optimizer", "adamw", "--optimizer-implementation", "fused"}},
        SpokenCase{{"--optim", "paged_adamw_32bit", "--framework", "ddp"},
                   {"--optimizer", "paged_adamw", "--framework", "ddp"}},
        SpokenCase{{"--method", "qlora"},
                   {"--method", "lora", "--lora-quantization", "nf4_double"}},
        SpokenCase{{"--qlora", "--load-in-8bit", "--framework", "ddp"},
                   {"--method", "lora", "--lora-quantization", "int8", "--framework", "ddp"}},
        SpokenCase{{"--lora", "--lora-quantization", "4bit"},
                   {"--method", "lora", "--lora-quantization", "nf4"}},
        SpokenCase{{"--quantization", "4bit"}, {"--method", "lora", "--lora-quantization", "nf4"}},
        SpokenCase{{"--load-in-4bit"}, {"--method", "lora", "--lora-quantization", "nf4"}},
        SpokenCase{{"--lora", "--target-modules", "all-linear"},
                   {"--method", "lora", "--lora-targets", "all-linear"}},
        SpokenCase{{"--seq", "1k"}, {"--sequence-length", "1024"}},
        SpokenCase{{"--host-memory", "512GB"}, {"--host-memory-bytes", "512000000000"}},
        SpokenCase{{"--host-memory", "512 GiB"}, {"--host-memory-bytes", "549755813888"}},
        SpokenCase{{"--tokens", "15T"}, {"--tokens", "15e12"}},
        SpokenCase{{"--price-per-gpu-hour", "$2.50"}, {"--price-per-gpu-hour", "2.5"}}));

TEST(SpokenFlags, ThatMeanNothingGetTheOneThatWasMeant) {
  const Finished misspelt = shardplan({"fit", "gpt2", "1xH100", "--seqlenn", "8"});
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("did you mean '--sequence-length'"));
  EXPECT_EQ(shardplan({"fit", "gpt2", "1xH100", "--xyzzy"}).exit_code, 2);
  EXPECT_THAT(shardplan({"fit", "gpt2", "1xH100", "--seq", "8q"}).err, HasSubstr("8192 or 8k"));
  EXPECT_THAT(shardplan({"fit", "gpt2", "1xH100", "--attention", "egaer"}).err,
              HasSubstr("did you mean 'eager'"));
  EXPECT_THAT(shardplan({"fit", "gpt2", "1xH100", "--quantization", "4bitt"}).err,
              HasSubstr("did you mean '4bit'"));
}

TEST(SpokenJobs, KnowTheSameWords) {
  const TemporaryFolder folder;
  const auto answer_to = [&](const char* optimizer, const char* attention, const char* length) {
    const std::string job = folder.file(
        "job.json", fmt::format(R"({{"model": "gpt2", "cluster": "1xA100-40GB", "attention": "{}",
            "workload": {{"sequence_length": {}}}, "optimizer": {}, "precision": "bf16-autocast"}})",
                                attention, length, optimizer));
    return shardplan({"estimate", job, "--format", "json"}).out;
  };
  EXPECT_EQ(answer_to("\"adamw_torch_fused\"", "fused", "\"1k\""),
            answer_to(R"({"name": "adamw", "implementation": "fused"})", "sdpa", "1024"));
}

TEST(ModelAndCluster, StandBehindEveryCommand) {
  const TemporaryFolder folder;
  const Words words{"gpt2", "2xA100-40GB"};
  for (const Words& command :
       {Words{"estimate"}, Words{"compare"}, Words{"max", "--of", "micro_batch"}, Words{"search"},
        Words{"report"}, Words{"export"}, Words{"simulate"}}) {
    Words arguments = command;
    arguments.insert(arguments.begin() + 1, words.begin(), words.end());
    const Finished finished = shardplan(arguments);
    EXPECT_EQ(finished.exit_code, 0) << command[0] << finished.err;
    EXPECT_FALSE(finished.out.empty()) << command[0];
  }
  const auto peak = [](const Finished& f) {
    return parse_json(f.out, "stdout").at("gpu").at("peak").dump();
  };
  const Finished fit = shardplan({"fit", "gpt2", "2xA100-40GB", "--format", "json"});
  const Finished estimate = shardplan({"estimate", "gpt2", "2xA100-40GB", "--format", "json"});
  EXPECT_EQ(peak(fit), peak(estimate));
  EXPECT_THAT(estimate.out, HasSubstr("checkpointing: full"));
  EXPECT_THAT(shardplan({"estimate", "gtp2", "2xA100-40GB"}).err, HasSubstr("gpt2"));
}

TEST(ModelAndCluster, TakeAFileOfACluster) {
  const TemporaryFolder folder;
  const std::string cluster =
      folder.file("cluster.json", R"({"gpu": "A100-40GB", "gpus_per_node": 2})");
  const Finished named = shardplan({"fit", "gpt2", "2xA100-40GB", "--format", "json"});
  for (const Words& arguments : {Words{"fit", "gpt2", cluster, "--format", "json"},
                                 Words{"estimate", "gpt2", cluster, "--format", "json"},
                                 Words{"fit", "gpt2", "--cluster", cluster, "--format", "json"}}) {
    const Finished of_file = shardplan(arguments);
    EXPECT_EQ(parse_json(of_file.out, "a").at("gpu").at("peak"),
              parse_json(named.out, "b").at("gpu").at("peak"))
        << of_file.err;
  }
}

TEST(ModelAndCluster, TakeAPerceptron) {
  const Finished fit = shardplan({"fit", "--mlp", "784,128,10", "1xA100-40GB", "--format", "json"});
  EXPECT_EQ(parse_json(fit.out, "a").at("model").at("parameters"), 101770) << fit.err;
  const Finished estimate =
      shardplan({"estimate", "--mlp", "784,128,10", "--cluster", "1xA100-40GB"});
  EXPECT_EQ(estimate.exit_code, 0) << estimate.err;
}

/// "--serve" leaves it to --engine which one, in either order, and to fit over how many GPUs.
TEST(Serve, IsSaidBesideAnEngine) {
  const auto said = [](const Words& flags) {
    Words arguments{"fit", "llama-3.1-70b", "2xH200", "--format", "json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Finished finished = shardplan(arguments);
    EXPECT_EQ(finished.err, "");
    EXPECT_EQ(finished.exit_code, 0);
    return finished.out;
  };
  EXPECT_EQ(said({"--serve", "--engine", "sglang"}), said({"--engine", "sglang"}));
  EXPECT_EQ(said({"--engine=sglang", "--serve"}), said({"--engine", "sglang"}));
  EXPECT_NE(said({"--serve"}), said({"--engine", "sglang"}));
  EXPECT_EQ(Json::parse(said({"--serve"}))["verdict"]["fits"], true);  // over both GPUs
}

}  // namespace
}  // namespace shardplan::spoken_cli_test
