// What a trainer has where a job that names it says nothing.
#include "load/trainer_defaults.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/job.h"
#include "trainers/description.h"

namespace shardplan::trainer_defaults_test {
namespace {

using ::testing::Contains;

Json job_of(const char* trainer, Json more = Json::object()) {
  Json job{{"model", "qwen2.5-0.5b"},
           {"cluster", "4xH100"},
           {"trainer", trainer},
           {"workload",
            {{"kind", "rlhf"},
             {"algorithm", "grpo"},
             {"prompt_length", 256},
             {"new_tokens", 256},
             {"rollout", {{"engine", "vllm"}}}}}};
  job.merge_patch(more);
  return job;
}

Json filled(const char* trainer, const Json& more = Json::object(), std::int64_t world = 4) {
  return with_trainer_defaults(job_of(trainer, more), world).job;
}

TEST(TrainerDefaults, AreThoseOfVerlsConfiguration) {
  const Json job = filled("verl");
  EXPECT_EQ(job["framework"], (Json{{"name", "fsdp1"}, {"reduce_dtype", "fp32"}}));
  EXPECT_EQ(job["precision"], "bf16-autocast");
  EXPECT_EQ(job["optimizer"]["implementation"], "foreach");
  const Json& rollout = job["workload"]["rollout"];
  EXPECT_EQ(rollout["gpu_memory_utilization"], 0.5);
  EXPECT_EQ(rollout["sleep_level"], 2);
  EXPECT_EQ(rollout["weight_bucket"], std::int64_t{2} << 30);
  EXPECT_EQ(job["workload"]["models"]["reference"]["framework"]["cpu_offload"], true);
  EXPECT_EQ(filled("verl", Json::object(), 1)["workload"]["models"]["reference"]["idle"], "host");
}

TEST(TrainerDefaults, LeaveWhatAJobSays) {
  const Json more{{"framework", "fsdp2"},
                  {"precision", "bf16-pure"},
                  {"optimizer", {{"implementation", "fused"}}},
                  {"workload",
                   {{"reference", "none"},
                    {"rollout", {{"sleep_level", 0}, {"gpu_memory_utilization", 0.2}}}}}};
  const Json job = filled("verl", more);
  EXPECT_EQ(job["framework"]["name"], "fsdp2");
  EXPECT_EQ(job["precision"], "bf16-pure");
  EXPECT_EQ(job["optimizer"]["implementation"], "fused");
  EXPECT_EQ(job["workload"]["rollout"]["sleep_level"], 0);
  EXPECT_EQ(job["workload"]["rollout"]["gpu_memory_utilization"], 0.2);
  EXPECT_FALSE(job["workload"].contains("models"));
}

TEST(TrainerDefaults, ComeOnce) {
  for (const char* trainer : {"trl", "verl", "nemo_rl", "openrlhf"}) {
    const FilledJob once = with_trainer_defaults(job_of(trainer), 4);
    EXPECT_FALSE(once.assumed.empty()) << trainer;
    const FilledJob twice = with_trainer_defaults(once.job, 4);
    EXPECT_EQ(twice.job, once.job) << trainer;
    EXPECT_TRUE(twice.assumed.empty()) << trainer;
  }
}

TEST(TrainerDefaults, AreOfNoOtherTrainer) {
  for (const char* trainer : {"loop", "hf_trainer", "axolotl"})
    EXPECT_EQ(filled(trainer), job_of(trainer)) << trainer;
}

/// An engine on GPUs of its own does not sleep, and TRL's is another command's.
TEST(TrainerDefaults, OfAnEngineGoByItsPlace) {
  const Json apart{{"workload", {{"rollout", {{"placement", "separate"}, {"gpus", 4}}}}}};
  EXPECT_FALSE(filled("verl", apart)["workload"]["rollout"].contains("sleep_level"));
  EXPECT_FALSE(filled("trl", apart)["workload"]["rollout"].contains("gpu_memory_utilization"));
  EXPECT_EQ(filled("trl")["workload"]["rollout"]["gpu_memory_utilization"], 0.3);
  EXPECT_FALSE(filled("nemo_rl", apart)["workload"].contains("models") &&
               filled("nemo_rl", apart)["workload"]["models"].contains("actor"));
}

/// Their workers under Megatron-LM are Megatron-LM's, which other trainers do not run.
TEST(TrainerDefaults, NameNoTrainerUnderMegatron) {
  const Json megatron{{"framework", "megatron"}};
  EXPECT_FALSE(filled("verl", megatron).contains("trainer"));
  EXPECT_EQ(filled("verl", megatron)["framework"]["overlap_grad_reduce"], false);
  EXPECT_EQ(filled("nemo_rl", megatron)["workload"]["rollout"]["log_probabilities"], true);
  EXPECT_EQ(filled("trl", megatron)["trainer"], "trl");
}

/// The reader refuses the trainer itself.
TEST(TrainerDefaults, AreOfTrainingAlone) {
  Json serving = job_of("verl");
  serving["workload"] = Json{{"kind", "inference"}};
  EXPECT_EQ(with_trainer_defaults(serving, 4).job, serving);
  Json training = job_of("verl");
  training["workload"] = Json{{"micro_batch", 2}};
  EXPECT_EQ(with_trainer_defaults(training, 4).job["framework"]["name"], "fsdp1");
}

TEST(TrainerDefaults, AreSaid) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Job job = load_job(job_of("verl"), "job.json", {.hardware = &hardware});
  EXPECT_EQ(job.plan.trainer->name, "verl");
  EXPECT_THAT(job.assumed, Contains("framework: fsdp1, as verl has it"));
}

}  // namespace
}  // namespace shardplan::trainer_defaults_test
