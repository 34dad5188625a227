// accelerate's YAML and HF TrainingArguments, as they are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/accelerate.h"
#include "load/training_arguments.h"
#include "support/error_of.h"
#include "yaml/document.h"

namespace shardplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> paths(const std::vector<MisreadKey>& misread) {
  std::vector<std::string> found;
  for (const MisreadKey& key : misread) found.push_back(key.path + ": " + key.expected);
  return found;
}

TEST(Yaml, ScalarsAreReadAsPyYamlReadsThem) {
  const Json value = parse_yaml(
                         "a: yes\nb: Off\nc: ~\nd: 1e-5\ne: 1.0e-5\nf: '8'\ng: 08\nh: 1_000\n"
                         "i: -3\nj: no one\nk: [1, 2.5]\nl:\n",
                         "a.yaml")
                         .value;
  EXPECT_EQ(value.dump(), R"({"a":true,"b":false,"c":null,"d":"1e-5","e":1e-05,"f":"8","g":"08",)"
                          R"("h":1000,"i":-3,"j":"no one","k":[1,2.5],"l":null})");
}

TEST(Yaml, KeysHavePlaces) {
  const YamlDocument yaml = parse_yaml("a: 1\nb:\n  c: 2\n", "a.yaml");
  EXPECT_EQ(yaml.positions.find("b.c"), (TextPosition{3, 3}));
}

TEST(Yaml, TheLastOfRepeatedKeysCounts) {
  const YamlDocument yaml = parse_yaml("b:\n  a: 1\n  a: 2\n", "a.yaml");
  EXPECT_EQ(yaml.value["b"]["a"], 2);
  EXPECT_EQ(yaml.repeated, std::vector<std::string>{"b.a"});
}

TEST(Yaml, BadTextsAreRefusedWithTheirPlace) {
  EXPECT_THAT(error_text([] { parse_yaml("a:\n\tb: 1\n", "a.yaml"); }),
              HasSubstr("a.yaml: line 2, column"));
  EXPECT_THAT(error_text([] { parse_yaml(std::string(2000, '['), "a.yaml"); }),
              HasSubstr("a.yaml"));
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = std::to_string(i - 1), now = std::to_string(i);
    bomb += "a" + now + ": &a" + now + " [*a" + last;
    for (int k = 0; k < 8; ++k) bomb += ", *a" + last;
    bomb += "]\n";
  }
  EXPECT_THAT(error_text([&] { parse_yaml(bomb, "a.yaml"); }),
              HasSubstr("more than a configuration has"));
}

AccelerateConfig accelerate(const std::string& text) {
  return read_accelerate(text, "a.yaml");
}

TEST(Accelerate, SaysWhoStartsHowManyProcesses) {
  const AccelerateConfig config = accelerate(
      "distributed_type: DEEPSPEED\nnum_processes: 16\nnum_machines: 2\nmixed_precision: bf16\n"
      "deepspeed_config:\n  zero_stage: 3\n");
  EXPECT_THAT(paths(config.misread), IsEmpty());
  EXPECT_TRUE(config.deepspeed());
  EXPECT_EQ(config.processes, 16);
  EXPECT_EQ(config.machines, 2);
  EXPECT_EQ(config.mixed_precision, "bf16");
  EXPECT_TRUE(config.zero3_init);
}

TEST(Accelerate, NoWithoutQuotesIsNoMixedPrecision) {
  EXPECT_EQ(accelerate("distributed_type: DEEPSPEED\nmixed_precision: no\n").mixed_precision,
            std::nullopt);
}

TEST(Accelerate, ValuesOfAnotherTypeAreNoted) {
  const AccelerateConfig config =
      accelerate("distributed_type: DEEPSPEED\nnum_processes: eight\nnum_machines: '2'\n");
  EXPECT_EQ(config.processes, std::nullopt);
  EXPECT_EQ(config.machines, 1);
  EXPECT_THAT(paths(config.misread),
              ElementsAre("num_processes: an integer", "num_machines: an integer"));
}

TEST(Accelerate, ThePluginMakesADsConfig) {
  const Json made = plugin_ds_config(accelerate(
      "distributed_type: DEEPSPEED\nmixed_precision: fp16\ndeepspeed_config:\n"
      "  zero_stage: 3\n  offload_param_device: nvme\n  offload_param_nvme_path: /nvme\n"));
  EXPECT_EQ(made["zero_optimization"]["stage"], 3);
  EXPECT_EQ(made["zero_optimization"]["offload_param"]["nvme_path"], "/nvme");
  EXPECT_EQ(made["zero_optimization"]["offload_optimizer"]["device"], "none");
  EXPECT_EQ(made["fp16"]["enabled"], true);
  EXPECT_EQ(made["gradient_clipping"], "auto");
}

TEST(TrainingArguments, HaveTheTrainersDefaults) {
  const TrainingArguments a = read_training_arguments("{\"bf16\": true}", "t.json");
  EXPECT_EQ(a.values.per_device_train_batch_size, 8);
  EXPECT_EQ(a.values.gradient_accumulation_steps, 1);
  EXPECT_EQ(a.values.max_grad_norm, 1.0);
  EXPECT_EQ(a.values.learning_rate, 5e-5);
  EXPECT_EQ(a.values.bf16, true);
  EXPECT_EQ(a.values.fp16, false);
  EXPECT_EQ(a.values.total_steps, std::nullopt);
}

TEST(TrainingArguments, WarmUpIsInStepsOrAPartOfThem) {
  const auto warmup = [](const char* text) {
    return read_training_arguments(text, "t.json").values.warmup_steps;
  };
  EXPECT_EQ(warmup(R"({"warmup_steps": 100})"), 100);
  EXPECT_EQ(warmup(R"({"warmup_ratio": 0.03, "max_steps": 1000})"), 30);
  EXPECT_EQ(warmup(R"({"warmup_steps": 0.1, "max_steps": 95})"), 10);
  EXPECT_EQ(warmup(R"({"warmup_ratio": 0.03})"), std::nullopt);
  EXPECT_EQ(warmup("{}"), 0);
}

TEST(TrainingArguments, ValuesOfAnotherTypeAreNotedAndTheDefaultHolds) {
  const TrainingArguments a =
      read_training_arguments(R"({"learning_rate": "1e-5", "bf16": 1})", "t.json");
  EXPECT_EQ(a.values.learning_rate, 5e-5);
  EXPECT_THAT(paths(a.misread), ElementsAre("learning_rate: a number", "bf16: true or false"));
}

}  // namespace
}  // namespace shardplan
