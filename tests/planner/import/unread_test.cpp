// Files of trainers that no kind reads: told by name, and what is near them is not guessed.
#include <gmock/gmock.h>

#include "import_testing.h"

namespace shardplan::importing::unread_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Unread, TrainersAreToldByName) {
  const auto is_of = [](std::string_view text, const char* trainer) {
    EXPECT_THAT(error_of(text), HasSubstr(std::string("a file of ") + trainer + ","));
  };
  is_of("model: {_CLASS_: TransformerConfig, d_model: 4096}\ntrain_module: {ac_config: null}\n",
        "OLMo-core");
  is_of("llm_backbone: gpt2\ntraining: {batch_size: 2}\n", "H2O LLM Studio");
  is_of("train: {batch_size: 2}\nmethod: {name: PPOConfig}\n", "trlX");
  // "base_model" and "adapter" are axolotl's too.
  is_of(
      "model_type: llm\nbase_model: gpt2\nadapter: {type: lora}\ninput_features: []\n"
      "output_features: []\n",
      "Ludwig");
  is_of("model_id_or_path: /models/7B\ndata: {instruct_data: a.jsonl}\n", "mistral-finetune");
  is_of("trainer: {devices: 4}\nmodel: {class_path: my.Model}\n", "Lightning's command line");
}

/// Two models of DPO were estimated as one that is trained alone.
TEST(Unread, NeMoAlignersOtherTrainings) {
  const std::string core =
      "trainer: {precision: bf16, %}\nexp_manager: {}\nmodel: {micro_batch_size: 1, "
      "global_batch_size: 8, mcore_gpt: true}\n";
  const auto with = [&](const std::string& training) {
    std::string text = core;
    return text.replace(text.find('%'), 1, training);
  };
  EXPECT_THAT(error_of(with("dpo: {max_steps: 3}")), HasSubstr("NeMo-Aligner"));
  EXPECT_THAT(error_of(with("ppo: {max_steps: 3}")), HasSubstr("NeMo-Aligner"));
  EXPECT_THAT(error_of(with("sft: {max_steps: 3}")), Not(HasSubstr("NeMo-Aligner")));
}

/// References to blocks of the same file are no sign of a group of Hydra's; nor are a workflow's.
TEST(Unread, OnlyAGroupOfHydrasIsTakenForOne) {
  constexpr const char* kGroup = "options of one worker alone";
  EXPECT_THAT(error_of("strategy: ${actor.strategy}\n"), HasSubstr(kGroup));
  EXPECT_THAT(error_of("sizes: {a: 1}\nb: ${sizes.a}\n"), Not(HasSubstr(kGroup)));
  EXPECT_THAT(error_of("jobs: {build: {env: \"${{ github.ref }}\"}}\n"), Not(HasSubstr(kGroup)));
  EXPECT_THAT(error_of("run: ${path.choose:a/b.py}\n"), HasSubstr("of no kind that is known"));
}

/// "[INST] ... = ..." within a text of a YAML headed a table of TOML.
TEST(Unread, AYamlWithLinesInBracketsIsAYaml) {
  const Json job = job_of(
      "base_model: gpt2\ndatasets: []\nmicro_batch_size: 2\nsequence_len: 512\n"
      "format: |-\n  [INST] a query\n  x = y [/INST]\n");
  EXPECT_EQ(job.at("trainer"), "axolotl");
  EXPECT_EQ(job.at("workload").at("micro_batch"), 2);
}

}  // namespace
}  // namespace shardplan::importing::unread_test
