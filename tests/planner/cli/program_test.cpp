// The command line as a function: what a caller within the same process gets.
#include "cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/diagnostic.h"
#include "cli/transcript.h"
#include "json/document.h"
#include "json/given_texts.h"
#include "support/subprocess.h"

namespace shardplan::cli::program_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kFit{"fit", "gpt2", "1xA100-40GB"};

TEST(RunProgram, KeepsWhatTheProgramPrints) {
  Transcript transcript;
  EXPECT_EQ(run_program(kFit), Exit::done);
  EXPECT_EQ(transcript.answer,
            shardplan::run_program(SHARDPLAN_PROGRAM, kFit, "LC_ALL=C.UTF-8").out);
  EXPECT_EQ(transcript.remarks, "");
}

TEST(RunProgram, KeepsRemarksApart) {
  Transcript transcript;
  const GivenTexts given(
      TextsByName{{"<arguments>", R"({"per_device_train_batch_size": 2, "output_dir": "out"})"}});
  EXPECT_EQ(run_program({"import", "<arguments>", "--model=gpt2", "--cluster=1xA100-40GB"}),
            Exit::done);
  EXPECT_THAT(transcript.remarks, HasSubstr("<arguments>: arguments of transformers'"));
  EXPECT_EQ(parse_json(transcript.answer, "answer")["workload"]["micro_batch"], 2);
}

TEST(RunProgram, TheInnermostTranscriptKeeps) {
  Transcript outer;
  {
    Transcript inner;
    run_program({"--version"});
    EXPECT_NE(inner.answer, "");
  }
  EXPECT_EQ(outer.answer, "");
  EXPECT_EQ(Transcript::current(), &outer);
}

TEST(RunProgram, ThrowsWhatTheProgramTells) {
  const Transcript transcript;
  EXPECT_THROW(run_program({"fitt"}), UsageError);
  EXPECT_THROW(run_program({"fit", "gpt2", "1xA100-40GB", "--micro-bach=2"}), UsageError);
  EXPECT_THROW(run_program({"fit", "no-model", "1xA100-40GB"}), InputError);
  EXPECT_EQ(run_program({"fit", "llama-2-70b", "1xA100-40GB"}), Exit::does_not_fit);
}

std::string refusal(const std::vector<std::string>& arguments) {
  Transcript transcript;
  try {
    run_program(arguments);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

/// Whatever an option's words are: the nearest of them.
TEST(RunProgram, NamesTheNearestWord) {
  EXPECT_THAT(refusal({"catalog", "gpu"}), HasSubstr("did you mean 'gpus'?"));
  EXPECT_THAT(refusal({"max", "gpt2", "--of", "microbatches"}), HasSubstr("'micro_batch'?"));
  EXPECT_THAT(refusal({"fit", "gpt2", "8xH100", "--batch", "4"}), HasSubstr("'micro_batch'?"));
  EXPECT_THAT(refusal({"fit", "gpt2", "8xH100", "--tensor", "2"}),
              HasSubstr("'--tensor-parallel'?"));
  EXPECT_THAT(refusal({"fit", "8xH100", "gpt2"}), HasSubstr("the model first: gpt2 8xH100"));
  EXPECT_THAT(refusal({"fit", "gpt2", "4", "A100"}), HasSubstr("did you mean '4xA100'?"));
  EXPECT_THAT(refusal({"fit", "gpt2", "4", "x", "A100"}), HasSubstr("did you mean '4xA100'?"));
  EXPECT_THAT(refusal({"fit", "gpt2", "H100", "8"}), HasSubstr("did you mean '8xH100'?"));
  EXPECT_THAT(refusal({"fit", "llama3", "8xH100"}), HasSubstr("did you mean 'llama-3"));
  EXPECT_THAT(refusal({"fit", "Llama-3.1-8B-Instrct", "8xH100"}), HasSubstr("'llama-3.1-8b'?"));
  EXPECT_THAT(refusal({"fit", "mistral", "8xH100"}), HasSubstr("did you mean 'mistral-"));
}

TEST(RunProgram, SaysWhatAFlagWithoutAValueCanBe) {
  EXPECT_THAT(refusal({"fit", "gpt2", "1xH100", "--checkpointing"}),
              HasSubstr("--checkpointing has no value behind it"));
  EXPECT_THAT(refusal({"fit", "gpt2", "1xH100", "--checkpointing"}),
              HasSubstr("none, selective or full"));
}

TEST(RunProgram, SaysWhatAFrameworkOrAPrecisionIsCalled) {
  const auto refused = [](const char* flag, const char* word) {
    return refusal({"fit", "gpt2", "8xH100", flag, word});
  };
  for (const char* word : {"zero2", "ZeRO-2", "deepspeed-zero2", "ds2"})
    EXPECT_THAT(refused("--framework", word), HasSubstr("--framework deepspeed --zero-stage 2"))
        << word;
  EXPECT_THAT(refused("--framework", "fsdp3"), HasSubstr("did you mean 'fsdp2'?"));
  EXPECT_THAT(refused("--framework", "huggingface"), HasSubstr("--trainer hf_trainer"));
  EXPECT_THAT(refused("--precision", "bf16-mixed"), HasSubstr("did you mean 'bf16-autocast'?"));
  EXPECT_THAT(refused("--precision", "16-mixed"), HasSubstr("did you mean 'fp16-autocast'?"));
  EXPECT_THAT(refused("--precision", "fp8"), HasSubstr("precision.linear (--linear)"));
  EXPECT_EQ(refused("--precision", "bf-16"), "") << "as bf16";
}

/// Nobody knows what the host of a single card has.
TEST(RunProgram, NoFixFitsAHostThatIsNotKnown) {
  const auto answer = [](std::vector<std::string> more) {
    Transcript transcript;
    std::vector<std::string> words{"fit", "llama-3.1-8b", "1xRTX4090"};
    words.insert(words.end(), more.begin(), more.end());
    run_program(words);
    return transcript.answer;
  };
  EXPECT_THAT(answer({}), HasSubstr("of each host if it has as much"));
  EXPECT_THAT(answer({"--host-memory-bytes", "1e12"}), Not(HasSubstr("if it has as much")));
}

/// A trainer's file that is not understood is no broken config.json of a model.
TEST(RunProgram, SaysOfATrainersFileWhatImportSays) {
  const GivenTexts given(
      TextsByName{{"recipe.yaml", "train: {global_batch_size: 8, micro_batch_size: 1}\n"},
                  {"train.py", "import torch\nprint(torch.cuda.is_available())\n"},
                  {"train.sh", "echo begins\n"}});
  EXPECT_THAT(refusal({"fit", "recipe.yaml", "1xH100"}), HasSubstr("a file of LitGPT"));
  EXPECT_THAT(refusal({"fit", "train.py", "1xH100"}), HasSubstr("makes no TrainingArguments"));
  EXPECT_THAT(refusal({"fit", "train.sh", "1xH100"}), HasSubstr("no program with arguments"));
}

TEST(RunProgram, NamesTheNumberThatIsTooLarge) {
  const Transcript transcript;
  const auto error_of = [](const char* command, const char* flag) {
    try {
      run_program({command, "gpt2", "8xA100-40GB", "--framework=fsdp2", flag,
                   "--sequence-length=2000000000", "--gradient-accumulation=2000000000"});
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  for (const char* command : {"fit", "estimate", "compare"})
    EXPECT_THAT(error_of(command, "--micro-batch=2100000000"),
                HasSubstr("workload.micro_batch: 2100000000 is too large"))
        << command;
}

/// The product that makes lent keys is kept by the policy in the forward pass and held by the
/// recomputation: under one name it was freed twice, and the program stopped at its own check.
TEST(RunProgram, EstimatesLentKeysThatAPolicyKeeps) {
  const Transcript transcript;
  EXPECT_EQ(run_program({"estimate", "gemma-4-e2b", "8xH200", "--framework=ddp", "--method=lora",
                         "--lora-targets=k_proj,v_proj", "--checkpointing=selective"}),
            Exit::done);
}

TEST(RunProgram, LeavesTheCallersHandlerOfInterrupts) {
  const auto own = [](int) {};
  std::signal(SIGINT, own);
  const Transcript transcript;
  run_program({"search", "--model=gpt2", "--cluster=2xA100-40GB", "--zero-stages=2"});
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), static_cast<void (*)(int)>(own));
}

}  // namespace
}  // namespace shardplan::cli::program_test
