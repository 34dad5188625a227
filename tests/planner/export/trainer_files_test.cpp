// What trainers' files cannot say is refused by its field; the rest is in the round trips of
// tests/planner/import.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "estimate/rlhf.h"
#include "export/export.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "support/error_of.h"

namespace shardplan::trainer_files_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json job(const Json& more) {
  Json asked{{"model", "qwen2.5-0.5b"},      {"cluster", "4xH100"},
             {"trainer", "hf_trainer"},      {"framework", "fsdp2"},
             {"precision", "bf16-autocast"}, {"workload", {{"sequence_length", 512}}}};
  asked.merge_patch(more);
  return asked;
}

std::string written(std::string_view format, const Json& asked) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Job loaded = load_job(asked, "job.json", {.hardware = &hardware});
  const Calibration calibration = load_calibration();
  const Estimate e = loaded.rlhf ? estimate_rlhf(*loaded.rlhf, calibration)
                                 : estimate(loaded.model, loaded.plan, calibration);
  return export_as(format, asked, loaded, e).text;
}

std::string refused(std::string_view format, const Json& more) {
  return error_text([&] { written(format, job(more)); });
}

TEST(TrainerFiles, RefuseByTheField) {
  const Json pure{{"precision", {{"params", "bf16"}}}};
  EXPECT_THAT(refused("axolotl", pure), HasSubstr("trainer: "));
  EXPECT_THAT(refused("axolotl", {{"trainer", "axolotl"}}), HasSubstr("precision: "));
  EXPECT_THAT(refused("training_arguments", pure),
              HasSubstr("casts what FSDP trains"));
  EXPECT_THAT(refused("ms_swift", {{"framework", {{"name", "fsdp2"}, {"cpu_offload", true}}}}),
              HasSubstr("framework: "));
  EXPECT_THAT(refused("nemo", Json::object()), HasSubstr("trainer: "));
  EXPECT_THAT(refused("nemo", {{"trainer", "loop"}}), HasSubstr("framework.reduce_dtype: "));
  EXPECT_THAT(refused("verl", Json::object()), HasSubstr("trainer: "));
  EXPECT_THAT(refused("verl", {{"trainer", "verl"}, {"optimizer", "lion"}}),
              HasSubstr("optimizer: "));
  EXPECT_THAT(refused("ms-swift", Json::object()),
              AllOf(HasSubstr("did you mean 'ms_swift'"), HasSubstr("verl")));
}

/// HF Trainer refuses a ds_config whose batch is not its own, in which a pair is one sample.
TEST(TrainerFiles, CountPairsInADsConfigAsTheTrainerDoes) {
  const Json dpo{{"trainer", "trl"},
                 {"framework", {{"name", "deepspeed"}, {"zero_stage", 3}}},
                 {"precision", "bf16-master"},
                 {"workload",
                  {{"kind", "rlhf"},
                   {"algorithm", "dpo"},
                   {"micro_batch", 2},
                   {"gradient_accumulation", 4},
                   {"method", "lora"},
                   {"lora", {{"rank", 16}}}}}};
  const Json file = Json::parse(written("training_arguments", job(dpo)));
  EXPECT_EQ(file["per_device_train_batch_size"], 2);
  EXPECT_EQ(file["deepspeed"]["train_micro_batch_size_per_gpu"], 2);
  EXPECT_EQ(file["deepspeed"]["train_batch_size"], 2 * 4 * 4);
}

/// Each was left out of the file without a word once, which another job then came back from.
TEST(TrainerFiles, RefuseWhatWouldComeBackAsAnotherPlan) {
  const Json lora{{"workload", {{"method", "lora"}}}, {"precision", "bf16-pure"}};
  EXPECT_THAT(refused("training_arguments", lora),
              HasSubstr("trainer: hf_trainer is not what runs"));
  const Json linears{{"precision", {{"preset", "bf16-autocast"}, {"linear", "fp8-rowwise"}}}};
  for (const char* format : {"training_arguments", "llamafactory", "ms_swift"})
    EXPECT_THAT(refused(format, linears), HasSubstr("precision.linear: ")) << format;
  const Json single{{"framework", "single"}, {"cluster", "1xH100"}};
  Json streams = single, blocks = single, views = single;
  streams["activation_offloading"] = "streams";
  blocks["compile"] = {{"scope", "block"}};
  EXPECT_THAT(refused("training_arguments", streams), HasSubstr("activation_offloading: "));
  EXPECT_THAT(refused("llamafactory", blocks), HasSubstr("compile.scope: "));
  views["cluster"] = "4xH100";
  views["framework"] = {{"name", "ddp"}, {"gradient_as_bucket_view", true}};
  EXPECT_THAT(refused("training_arguments", views),
              HasSubstr("framework.gradient_as_bucket_view: "));
  const Json copies{{"cluster", "2x4xH100"},
                    {"framework", {{"name", "fsdp2"}, {"hybrid_shard_size", 4}}}};
  EXPECT_THAT(refused("training_arguments", copies), HasSubstr("framework.hybrid_shard_size: "));
}

/// A loop of one's own has no file: a trainer's runs the plan in its place.
TEST(TrainerFiles, OfALoopAreThoseOfTheTrainerThatIsAskedFor) {
  const Json loop{{"trainer", "loop"}, {"framework", "ddp"}, {"precision", "bf16-pure"}};
  for (const char* format : {"training_arguments", "axolotl", "llamafactory"})
    EXPECT_FALSE(written(format, job(loop)).empty()) << format;
}

TEST(TrainerFiles, OfSeveralModelsAreTrls) {
  const auto with = [](const Json& work, const char* trainer) {
    Json more{{"trainer", trainer}, {"framework", "ddp"}, {"precision", "bf16-pure"}};
    Json asked = job(more);
    asked["workload"] = {{"kind", "rlhf"},
                         {"algorithm", "grpo"},
                         {"micro_batch", 2},
                         {"prompt_length", 256},
                         {"new_tokens", 128}};
    asked["workload"].update(work);
    return asked;
  };
  const std::string text = written("training_arguments", with(Json::object(), "trl"));
  EXPECT_THAT(text, AllOf(HasSubstr("\"max_completion_length\": 128"),
                          HasSubstr("\"num_generations\": 8,"), HasSubstr("\"beta\": 0.04")));
  const auto error = [&](const Json& work, const char* trainer) {
    return error_text([&] { written("training_arguments", with(work, trainer)); });
  };
  EXPECT_THAT(error(Json::object(), "hf_trainer"), HasSubstr("several models are written for TRL"));
  EXPECT_THAT(error({{"scoring_batch", 4}}, "trl"), HasSubstr("workload.scoring_batch"));
  EXPECT_THAT(error({{"rollout", {{"engine", "vllm"}, {"max_num_seqs", 8}}}}, "trl"),
              HasSubstr("workload.rollout.max_num_seqs"));
  EXPECT_THAT(error({{"models", {{"reference", {{"idle", "host"}}}}}}, "trl"),
              HasSubstr("workload.models"));
}

}  // namespace
}  // namespace shardplan::trainer_files_test
