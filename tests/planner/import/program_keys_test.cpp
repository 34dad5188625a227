// Keys of people's own programs around transformers' Trainer: what trains, and in how many bits.
#include <gmock/gmock.h>

#include "import_testing.h"

namespace shardplan::importing::program_keys_test {
namespace {

using ::testing::HasSubstr;

std::string arguments(std::string_view more, std::string_view model = "Qwen/Qwen2.5-7B") {
  return "model_name_or_path: " + std::string(model) +
         "\nper_device_train_batch_size: 1\noutput_dir: out\nbf16: true\n" + std::string(more);
}

Json lora_of(std::string_view more) {
  return job_of(arguments(more)).at("workload").value("lora", Json());
}

/// LLaVA's train.py and Qwen-VL-Series-Finetune: else all parameters would be estimated.
TEST(ProgramKeys, AdaptersAreTakenByEachProgramsName) {
  EXPECT_EQ(lora_of("lora_enable: true\n").at("targets"), Json{"all-linear"});
  EXPECT_EQ(lora_of("lora_enable: true\nlora_target_modules: [q_proj]\n").at("targets"),
            Json{"q_proj"});
  EXPECT_EQ(lora_of("use_llm_lora: 16\n").at("rank"), 16);
  EXPECT_EQ(lora_of("use_llm_lora: 0\n"), Json());
  EXPECT_EQ(lora_of("lora_enable: false\n"), Json());
  EXPECT_EQ(lora_of("full_finetune: false\n").at("targets"), Json{"all-linear"});
  EXPECT_EQ(lora_of("full_finetune: true\nlora_r: 8\n"), Json());
}

TEST(ProgramKeys, BasesInFewBits) {
  EXPECT_EQ(lora_of("lora_enable: true\nbits: 4\n").at("quantization"), "nf4_double");
  EXPECT_EQ(lora_of("lora_enable: true\nbits: 4\ndouble_quant: false\n").at("quantization"), "nf4");
  EXPECT_EQ(lora_of("lora_enable: true\nbits: 8\n").at("quantization"), "int8");
  EXPECT_FALSE(lora_of("lora_enable: true\nbits: 16\n").contains("quantization"));
  EXPECT_EQ(lora_of("use_lora: true\nq_lora: true\n").at("quantization"), "nf4");
  EXPECT_EQ(lora_of("use_qlora: true\nquant_bit: 8\n").at("quantization"), "int8");
}

/// peft's own examples (examples/sft): QLoRA was read as LoRA in 16 bits.
TEST(ProgramKeys, ThoseOfPeftsExamples) {
  const std::string lora = "use_peft_lora: true\nlora_r: 8\n";
  EXPECT_EQ(lora_of(lora + "use_4bit_quantization: true\n").at("quantization"), "nf4");
  EXPECT_EQ(
      lora_of(lora + "use_4bit_quantization: true\nuse_nested_quant: true\n").at("quantization"),
      "nf4_double");
  EXPECT_EQ(lora_of(lora + "use_8bit_quantization: true\n").at("quantization"), "int8");
  EXPECT_THAT(error_of(arguments("instance_data_dir: cats\n")), HasSubstr("draws images"));
}

/// Its default is qlora of rank 64 (component/argument.py).
TEST(ProgramKeys, FireflysModes) {
  EXPECT_EQ(lora_of("train_mode: full\nlora_rank: 8\n"), Json());
  EXPECT_FALSE(lora_of("train_mode: lora\n").contains("quantization"));
  const Json usual = lora_of("template_name: qwen\ntrain_file: a.jsonl\n");
  EXPECT_EQ(usual.at("quantization"), "nf4_double");
  EXPECT_EQ(usual.at("rank"), 64);
  EXPECT_EQ(lora_of("template_name: qwen\n"), Json()) << "of another program";
  EXPECT_THAT(error_of(arguments("train_mode: half\n")), HasSubstr("train_mode: 'half'"));
}

TEST(ProgramKeys, FrozenParts) {
  const auto frozen = [](std::string_view more) {
    const Json job = job_of(arguments(more, "Qwen/Qwen2.5-VL-3B-Instruct"));
    return job.at("workload").value("frozen", "");
  };
  EXPECT_EQ(frozen("freeze_vision_tower: true\nfreeze_merger: true\n"), "tower_and_projector");
  EXPECT_EQ(frozen("tune_mm_vision: false\ntune_mm_mlp: true\ntune_mm_llm: true\n"), "tower");
  EXPECT_EQ(job_of(arguments("grad_checkpoint: true\n")).at("checkpointing"), "full");
}

TEST(ProgramKeys, WhatIsNotEstimatedIsRefusedOrSaid) {
  EXPECT_THAT(error_of(arguments("train_group_size: 8\n")), HasSubstr("embedding model"));
  const auto notes = [](std::string_view more) {
    std::string all;
    for (const Note& note : import_text(arguments(more)).notes)
      if (note.kind == Note::Kind::warning) all += note.key + ": " + note.reason + "\n";
    return all;
  };
  EXPECT_THAT(notes("use_lisa: 1\n"), HasSubstr("use_lisa: only some layers"));
  EXPECT_THAT(notes("my_quantized_states: 8\n"), HasSubstr("by its name memory depends on it"));
  EXPECT_EQ(notes("my_quantized_states: false\nmy_colour: red\n"), "");
}

/// `--x=$UNSET` is as `--x $UNSET`; the usual value of a script counts, not what "$2" may bring.
TEST(ProgramKeys, OfScriptsWithArgumentsOfTheirOwn) {
  const std::string head = "batch=2\nwhile true; do\ncase $1 in\n--batch) batch=\"$2\";;\nesac\n";
  const Imported one =
      import_text(head +
                  "done\npython train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True"
                  " --per_device_train_batch_size $batch --output_dir=out"
                  " --gradient_accumulation_steps=$steps\n");
  EXPECT_EQ(one.job.at("workload").at("micro_batch"), 2);
  EXPECT_TRUE(std::ranges::any_of(one.notes, [](const Note& note) {
    return note.kind == Note::Kind::warning && note.key == "gradient_accumulation_steps";
  }));
}

}  // namespace
}  // namespace shardplan::importing::program_keys_test
