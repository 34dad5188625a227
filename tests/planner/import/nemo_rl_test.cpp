// NeMo RL's recipes, the files that they build on and the commands that run them.
#include <gmock/gmock.h>

#include <filesystem>

#include "estimate/rlhf.h"
#include "export/export.h"
#include "import_testing.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/estimate_job.h"
#include "support/subprocess.h"

namespace shardplan::importing::nemo_rl_test {
namespace {

using ::testing::HasSubstr;

/// On values of NeMo RL's own grpo_math_1B.yaml.
constexpr const char* kGrpo = R"(defaults: ../../grpo_math_1B.yaml
grpo:
  num_prompts_per_step: 64
  num_generations_per_prompt: 8
policy:
  model_name: meta-llama/Llama-3.1-8B-Instruct
  train_micro_batch_size: 1
  logprob_batch_size: 2
  max_total_sequence_length: 2048
  generation:
    max_new_tokens: 1536
    vllm_cfg:
      tensor_parallel_size: 2
cluster:
  gpus_per_node: 8
  num_nodes: 2
)";

constexpr const char* kMegatron = R"(defaults: ../../grpo_math_1B.yaml
policy:
  model_name: Qwen/Qwen3-30B-A3B
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  dtensor_cfg:
    enabled: false
  megatron_cfg:
    enabled: true
    activation_checkpointing: true
    tensor_model_parallel_size: 2
    expert_model_parallel_size: 8
    sequence_parallel: true
  sequence_packing:
    enabled: false
  generation:
    vllm_cfg:
      tensor_parallel_size: 2
cluster:
  gpus_per_node: 8
  num_nodes: 2
)";

constexpr const char* kSft = R"(defaults: sft.yaml
policy:
  train_global_batch_size: 64
  train_micro_batch_size: 2
  dtensor_cfg:
    activation_checkpointing: true
    lora_cfg:
      enabled: true
      dim: 16
cluster:
  gpus_per_node: 8
)";

constexpr const char* kDpo = R"(defaults: dpo.yaml
policy:
  train_micro_batch_size: 1
  max_total_sequence_length: 2048
cluster:
  gpus_per_node: 8
)";

const Json kGpu{{"cluster", "H100-80GB"}};

Job loaded(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(job, "job", {.hardware = &hardware, .directory = ""});
}

Json taken(std::string_view text) {
  Json job = job_of(text, kGpu);
  loaded(job);
  return job;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(ImportNemoRl, TakesARecipeAsItsWorkersRunIt) {
  const Json job = taken(kGrpo);
  EXPECT_EQ(job["trainer"], "nemo_rl");
  EXPECT_EQ(job["cluster"], "2x8xH100-80GB");
  EXPECT_EQ(job["framework"]["name"], "fsdp2");
  EXPECT_EQ(job["precision"], "bf16-autocast");
  EXPECT_EQ(job["checkpointing"], "none");
  const Json& work = job["workload"];
  EXPECT_EQ(work["algorithm"], "grpo");
  EXPECT_EQ(work["prompt_length"], 512);
  EXPECT_EQ(work["new_tokens"], 1536);
  EXPECT_EQ(work["gradient_accumulation"], 512 / 16);
  EXPECT_EQ(work["generation_batch"], 64 * 8 / 16);
  // sequence_packing of the base: rows of so many full samples.
  EXPECT_EQ(work["token_budget"], 2048);
  EXPECT_EQ(work["scoring_tokens"], 2 * 2048);
  EXPECT_EQ(work["models"]["actor"]["idle"], "host");
  EXPECT_EQ(work["models"]["reference"]["idle"], "host");
  const Json& rollout = work["rollout"];
  EXPECT_EQ(rollout["gpu_memory_utilization"], 0.6);
  EXPECT_EQ(rollout["tensor_parallel"], 2);
  EXPECT_EQ(rollout["max_model_length"], 2048);
  EXPECT_EQ(rollout["sleep_level"], 1);
  EXPECT_EQ(rollout["completions"], 8);
}

TEST(ImportNemoRl, TakesMegatron) {
  const Json job = taken(kMegatron);
  EXPECT_EQ(job["framework"]["name"], "megatron");
  EXPECT_EQ(job["framework"]["grad_reduce_dtype"], "bf16");
  EXPECT_EQ(job["precision"], "bf16-master");
  EXPECT_EQ(job["parallel"]["tensor"], 2);
  EXPECT_EQ(job["parallel"]["expert"], 8);
  EXPECT_EQ(job["parallel"]["sequence_parallel"], true);
  EXPECT_EQ(job["checkpointing"], "full");
  EXPECT_EQ(job["workload"]["scoring_batch"], 1);
  EXPECT_FALSE(job["workload"].contains("token_budget"));
}

TEST(ImportNemoRl, TakesSamplesAndPairs) {
  const Json sft = taken(kSft);
  EXPECT_EQ(sft["workload"].value("kind", "train"), "train");
  EXPECT_EQ(sft["workload"]["lora"]["rank"], 16);
  EXPECT_EQ(sft["workload"]["gradient_accumulation"], 64 / 8 / 2);
  EXPECT_EQ(sft["optimizer"]["implementation"], "for_loop");
  const Json dpo = taken(kDpo);
  EXPECT_EQ(dpo["workload"]["algorithm"], "dpo");
  EXPECT_EQ(dpo["workload"]["sequence_length"], 2048);
  EXPECT_EQ(dpo["workload"]["gradient_accumulation"], 128 / 8);
}

std::string with_own_gpus() {
  return with(kGrpo, "    max_new_tokens: 1536\n",
              "    max_new_tokens: 1536\n    colocated:\n      enabled: false\n"
              "      resources: {gpus_per_node: 8, num_nodes: 1}\n");
}
std::string with_async() {
  return with(with_own_gpus(), "grpo:\n",
              "grpo:\n  async_grpo: {enabled: true, max_trajectory_age_steps: 8, "
              "in_flight_weight_updates: true}\n");
}

TEST(ImportNemoRl, LetsAnEngineRunAhead) {
  EXPECT_EQ(taken(with_async())["workload"]["rollout"]["steps_off_policy"], 8);
  const std::string waits = with(with_async(), "updates: true", "updates: false");
  EXPECT_EQ(taken(waits)["workload"]["rollout"]["steps_off_policy"], 1);
}

TEST(ImportNemoRl, GivesAnEngineItsOwnGpus) {
  const std::string apart = with_own_gpus();
  const Json job = taken(apart);
  EXPECT_EQ(job["cluster"], "1x8xH100-80GB");
  EXPECT_EQ(job["workload"]["rollout"]["placement"], "separate");
  EXPECT_EQ(job["workload"]["rollout"]["gpus"], 8);
  EXPECT_FALSE(job["workload"]["rollout"].contains("steps_off_policy"));
  EXPECT_FALSE(job["workload"]["models"].contains("actor"));
  EXPECT_THAT(error_of(with(apart, "num_nodes: 1}", "num_nodes: 2}"), kGpu),
              HasSubstr("2 of 2 leaves nothing for the trainer or the engine"));
}

TEST(ImportNemoRl, SaysWhichKeyItCannotTake) {
  const auto more = [](const std::string& line) {
    return error_of(
        with(kGrpo, "  train_micro_batch_size: 1\n", "  train_micro_batch_size: 1\n" + line + "\n"),
        kGpu);
  };
  EXPECT_THAT(more("  draft: {enabled: true}"), HasSubstr("policy.draft"));
  EXPECT_THAT(more("  megatron_cfg: {mtp_num_layers: 1}"), HasSubstr("mtp_num_layers"));
  EXPECT_THAT(more("  megatron_cfg: {fp8_cfg: {enabled: true}}"), HasSubstr("8 bits"));
  EXPECT_THAT(more("  max_total_sequence_lenght: 9"),
              HasSubstr("did you mean 'policy.max_total_sequence_length'"));
  EXPECT_THAT(error_of(with(kGrpo, "grpo:\n", "ppo: {}\ngrpo:\n"), kGpu), HasSubstr("ppo"));
  EXPECT_THAT(error_of(with(kGrpo, "    vllm_cfg:", "    backend: trtllm\n    vllm_cfg:"), kGpu),
              HasSubstr("'trtllm' is not estimated"));
}

TEST(ImportNemoRl, NamesTheFileThatIsWanted) {
  EXPECT_THAT(error_of(with(kGrpo, "grpo_math_1B", "mine"), kGpu),
              HasSubstr("no file '../../mine.yaml'"));
}

/// A folder of folders that is gone with the test.
class Folder {
 public:
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    return folder_.file(name, text);
  }

 private:
  TemporaryFolder folder_;
};

TEST(ImportNemoRl, LaysArgumentsOverFilesOverTheirBase) {
  const Folder folder;
  folder.write("configs/base.yaml", with(kGrpo, "../../grpo_math_1B.yaml", "grpo_math_1B.yaml"));
  folder.write("configs/mine.yaml",
               "defaults: base.yaml\n"
               "policy:\n  train_micro_batch_size: 2\n  train_global_batch_size: "
               "${mul:${policy.train_micro_batch_size}, 64}\n"
               "  generation:\n    vllm_cfg: {_override_: true, gpu_memory_utilization: 0.5}\n");
  const std::string script = folder.write(
      "run.sh",
      "#!/bin/bash\nuv run examples/run_grpo.py \\\n    --config configs/mine.yaml \\\n"
      "    policy.max_total_sequence_length=4096 ++cluster.num_nodes=1 \\\n"
      "    logger.wandb_enabled=True $@ 2>&1 | tee log\n");
  const Json job = import_files({script}, "", kGpu).job;
  const Json& work = job["workload"];
  EXPECT_EQ(job["cluster"], "1x8xH100-80GB");
  EXPECT_EQ(work["micro_batch"], 2);
  EXPECT_EQ(work["gradient_accumulation"], 128 / 8 / 2);
  EXPECT_EQ(work["prompt_length"].get<int>() + work["new_tokens"].get<int>(), 4096);
  EXPECT_EQ(work["rollout"]["gpu_memory_utilization"], 0.5);
  EXPECT_EQ(work["rollout"]["tensor_parallel"], 1);
}

TEST(ImportNemoRl, FindsTheRecipeOfALaunchScript) {
  const Folder folder;
  folder.write("examples/configs/recipes/llm/one.yaml", kGrpo);
  const std::string script = folder.write(
      "tests/test_suites/llm/one.sh",
      "#!/bin/bash\nsource common.env\nuv run examples/run_grpo.py \\\n"
      "    --config \"$CONFIG_PATH\" \\\n    grpo.max_num_steps=$MAX_STEPS \\\n    $@\n"
      "uv run examples/convert.py --config=$CKPT_DIR/step_1/config.yaml\n");
  EXPECT_EQ(import_files({script}, "", kGpu).job, job_of(kGrpo, kGpu));
}

// A file that is written has the same job in it.
TEST(ImportNemoRl, TakesBackWhatIsExported) {
  const Calibration calibration = load_calibration();
  for (const std::string& recipe : {std::string(kGrpo), std::string(kMegatron), std::string(kSft),
                                    std::string(kDpo), with_own_gpus(), with_async()}) {
    const Json job = taken(recipe);
    const Job before = loaded(job);
    const Estimate estimate = estimate_job(before, calibration);
    const ExportedFile file = export_as("nemo_rl", job, before, estimate);
    EXPECT_EQ(job_of(file.text, kGpu).dump(1), job.dump(1)) << file.text;
  }
}

}  // namespace
}  // namespace shardplan::importing::nemo_rl_test
