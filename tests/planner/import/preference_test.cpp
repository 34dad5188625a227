// Preference training and reinforcement learning in trainers' files: each kind's algorithm, and the
// estimate that its job gets.
#include <gmock/gmock.h>

#include "estimate/rlhf.h"
#include "import/preference.h"
#include "import_testing.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::importing::preference_test {
namespace {

using ::testing::HasSubstr;

Estimate estimate(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return estimate_rlhf(*load_job(job, "job", {.hardware = &hardware, .directory = ""}).rlhf,
                       load_calibration());
}

constexpr const char* kTrlDpo = R"(
model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct
torch_dtype: bfloat16
bf16: true
beta: 0.05
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_length: 1024
gradient_checkpointing: true
output_dir: data/qwen-dpo
)";

constexpr const char* kFsdp2 = R"(
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
mixed_precision: bf16
num_machines: 1
num_processes: 8
)";

Json under_fsdp2(const std::string& arguments) {
  std::vector<Document> documents = parse_documents(arguments, "a");
  for (Document& more : parse_documents(kFsdp2, "b")) documents.push_back(std::move(more));
  return import_documents(documents, "", {{"cluster", "8xH100"}}).job;
}

constexpr const char* kSwiftGkd = R"(#!/bin/bash
NPROC_PER_NODE=4 swift rlhf --rlhf_type gkd --model Qwen/Qwen2.5-7B \
    --teacher_model Qwen/Qwen2.5-14B-Instruct --tuner_type full --torch_dtype bfloat16 \
    --per_device_train_batch_size 2 --max_length 2048 --max_completion_length 512 \
    --deepspeed zero3)";

TEST(ImportPreference, SwiftsDistillationHasATeacher) {
  const Json given = job_of(std::string(kSwiftGkd) + " --lmbda 0")["workload"];
  EXPECT_EQ(given["algorithm"], "gkd");
  EXPECT_EQ(given["sequence_length"], 2048);
  EXPECT_EQ(given["models"]["reference"]["model"], "Qwen/Qwen2.5-14B-Instruct");
  const Json own = job_of(std::string(kSwiftGkd) +
                          " --offload_teacher_model true "
                          "--teacher_deepspeed zero3_offload")["workload"];
  EXPECT_EQ(own["algorithm"], "gkd_on_policy");
  EXPECT_EQ(own["prompt_length"], 2048);
  EXPECT_EQ(own["new_tokens"], 512);
  EXPECT_EQ(own["models"]["reference"]["idle"], "host");
  const Json& zero = own["models"]["reference"]["framework"]["ds_config"]["zero_optimization"];
  EXPECT_EQ(zero["offload_param"]["device"], "cpu");
  const auto host = [](const std::string& more) {
    return estimate(job_of(std::string(kSwiftGkd) + more)).host_per_node.total();
  };
  EXPECT_GT(host(" --teacher_deepspeed zero3_offload"), host(""));
}

/// A teacher is no key that a trainer goes by: elsewhere it is refused, or said to be unused.
TEST(ImportPreference, ATeacherIsNeverLeftOut) {
  std::string grpo = kSwiftGkd;
  grpo.replace(grpo.find("gkd"), 3, "grpo");
  EXPECT_THAT(error_of(grpo), HasSubstr("a teacher beside GRPO"));
  const Json scored = job_of(grpo + " --beta 0")["workload"];
  EXPECT_EQ(scored["reference"], "copy");
  EXPECT_EQ(scored["models"]["reference"]["model"], "Qwen/Qwen2.5-14B-Instruct");
  EXPECT_THAT(error_of(std::string(kSwiftGkd) + " --teacher_model_server x"),
              HasSubstr("a teacher on a server"));
}

TEST(ImportPreference, TrlsDpoRunsUnderDdpWithTrlsOwnLoss) {
  const Json job = job_of(kTrlDpo);
  EXPECT_EQ(job["trainer"], "trl");
  EXPECT_EQ(job["framework"]["name"], "ddp");
  const Json& work = job["workload"];
  EXPECT_EQ(work["kind"], "rlhf");
  EXPECT_EQ(work["algorithm"], "dpo");
  EXPECT_EQ(work["micro_batch"], 2);
  EXPECT_EQ(work["gradient_accumulation"], 4);
  EXPECT_EQ(work["sequence_length"], 1024);
  EXPECT_FALSE(work.contains("reference"));
  EXPECT_GT(estimate(job).allocated.point, 0);
}

/// An answer has so many tokens at most: the rest of a full sequence is its prompt. How long a
/// prompt may be says nothing of how short it is.
TEST(ImportPreference, TheLongestAnswerTellsThePromptOfAFullSequence) {
  const auto work = [](const char* more) {
    return job_of(std::string(kTrlDpo) + more).at("workload");
  };
  EXPECT_EQ(work("max_completion_length: 256\n").at("prompt_length"), 768);
  EXPECT_EQ(work("max_completion_length: 256\n").at("sequence_length"), 1024);
  EXPECT_FALSE(work("max_completion_length: 1024\n").contains("prompt_length"));
  EXPECT_FALSE(work("max_prompt_length: 512\n").contains("prompt_length"));
}

TEST(ImportPreference, AReferenceStaysAsItWasLoadedWhereFsdpTrainsInFp32) {
  const Json job = under_fsdp2(kTrlDpo);
  EXPECT_EQ(job["precision"], "bf16-autocast");
  EXPECT_EQ(job["workload"]["models"]["reference"]["precision"], "bf16-pure");
  EXPECT_GT(estimate(job).allocated.point, 0);
  const Json precomputed = under_fsdp2(std::string(kTrlDpo) + "precompute_ref_log_probs: true\n");
  EXPECT_EQ(precomputed["workload"]["reference"], "precomputed");
  EXPECT_FALSE(precomputed["workload"].contains("models"));
  EXPECT_LT(estimate(precomputed).allocated.point, estimate(job).allocated.point);
}

TEST(ImportPreference, AConfigTellsItsAlgorithmByItsKeysAndNames) {
  const auto algorithm = [](const std::string& more) {
    return job_of(std::string(kTrlDpo) + more)["workload"].value("algorithm", "");
  };
  EXPECT_EQ(algorithm("desirable_weight: 1.0\n"), "kto");
  EXPECT_EQ(algorithm("loss_type: kto\n"), "kto");
  EXPECT_EQ(algorithm("loss_type: simpo\n"), "cpo");
  EXPECT_EQ(algorithm("cpo_alpha: 1.0\n"), "cpo");
  EXPECT_EQ(algorithm("loss_type: [sigmoid, bco_pair, sft]\n"), "dpo");
  EXPECT_EQ(algorithm("hub_model_id: zephyr-orpo-141b\n"), "orpo");
  EXPECT_EQ(algorithm("loss_type: apo_zero\n"), "dpo");
  EXPECT_THAT(error_of(std::string(kTrlDpo) + "num_ppo_epochs: 4\n"), HasSubstr("num_ppo_epochs"));
}

TEST(ImportPreference, GrpoAsksAReferenceWhereItsCoefficientIsNotZero) {
  const std::string grpo = R"(
model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct
bf16: true
per_device_train_batch_size: 8
num_generations: 8
max_prompt_length: 256
max_completion_length: 128
learning_rate: 1.0e-6
output_dir: out
)";
  const Json none = job_of(grpo);
  EXPECT_EQ(none["workload"]["algorithm"], "grpo");
  EXPECT_EQ(none["workload"]["prompt_length"], 256);
  EXPECT_EQ(none["workload"]["new_tokens"], 128);
  EXPECT_EQ(none["workload"]["reference"], "none");
  const Json asked = job_of(grpo + "beta: 0.04\n");
  EXPECT_FALSE(asked["workload"].contains("reference"));
  EXPECT_FALSE(asked["workload"].contains("beta"));
  EXPECT_GT(estimate(asked).allocated.point, estimate(none).allocated.point);
}

TEST(ImportPreference, VllmBesideTheTrainer) {
  const std::string grpo = R"(
model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct
bf16: true
per_device_train_batch_size: 8
num_generations: 8
max_completion_length: 128
learning_rate: 1.0e-6
output_dir: out
use_vllm: true
)";
  const Json usual = job_of(grpo)["workload"]["rollout"];
  EXPECT_EQ(usual["placement"], "colocated");
  EXPECT_EQ(usual["gpu_memory_utilization"], 0.3);
  EXPECT_EQ(usual["max_num_batched_tokens"], 4096);
  EXPECT_FALSE(usual.contains("sleep_level"));
  EXPECT_EQ(usual["completions"], 8);
  const Json said = job_of(grpo +
                           "vllm_gpu_memory_utilization: 0.5\nvllm_enable_sleep_mode: true\n"
                           "vllm_tensor_parallel_size: 2\n");
  EXPECT_EQ(said["workload"]["rollout"]["gpu_memory_utilization"], 0.5);
  EXPECT_EQ(said["workload"]["rollout"]["sleep_level"], 2);
  EXPECT_EQ(said["workload"]["rollout"]["tensor_parallel"], 2);
  EXPECT_GT(estimate(said).allocated.point, 0);
  EXPECT_EQ(job_of(grpo + "vllm_mode: server\n")["workload"]["rollout"]["placement"], "separate");
  EXPECT_FALSE(job_of(std::string(kTrlDpo) + "use_vllm: true\n")["workload"].contains("rollout"));
  const Json swift = job_of(
      "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-0.5B --use_vllm true "
      "--vllm_mode colocate --sleep_level 1 --per_device_train_batch_size 1\n");
  EXPECT_EQ(swift["workload"]["rollout"]["gpu_memory_utilization"], 0.9);
  EXPECT_EQ(swift["workload"]["rollout"]["sleep_level"], 1);
  EXPECT_EQ(swift["workload"]["rollout"]["completions"], 8);
}

/// Every key of TRL's that begins so is ignored where it changes nothing: one that counts must not
/// be among them for a letter.
TEST(ImportPreference, AnEnginesKeyIsNotIgnoredForALetter) {
  const std::string grpo = R"(
model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct
bf16: true
per_device_train_batch_size: 8
max_completion_length: 128
use_vllm: true
)";
  try {
    job_of(grpo + "vllm_gpu_memory_utilisation: 0.5\n");
    FAIL() << "taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.diagnostic().key, "vllm_gpu_memory_utilisation");
    EXPECT_EQ(error.diagnostic().nearest, "vllm_gpu_memory_utilization");
  }
  EXPECT_TRUE(job_of(grpo + "vllm_server_port: 8000\nvllm_pipeline_parallel_size: 1\n")
                  .contains("workload"));
}

TEST(ImportPreference, AxolotlsAlgorithms) {
  const auto job = [](const std::string& rl) {
    return job_of(R"(
base_model: Qwen/Qwen2.5-0.5B
datasets: [{path: x, type: y}]
sequence_len: 1024
micro_batch_size: 2
gradient_accumulation_steps: 2
adapter: lora
lora_r: 8
lora_target_modules: [q_proj, v_proj]
bf16: true
liger_rms_norm: true
rl: )" + rl + "\n");
  };
  EXPECT_EQ(job("ipo")["workload"]["algorithm"], "dpo");
  EXPECT_EQ(job("simpo")["workload"]["algorithm"], "cpo");
  EXPECT_EQ(job("kto")["workload"]["algorithm"], "kto");
  EXPECT_EQ(job("gdpo")["workload"]["algorithm"], "grpo");
  // Its TRL, 1.8, makes all logits; kernels of the layers stay.
  EXPECT_EQ(job("dpo")["trainer"], "axolotl");
  EXPECT_EQ(job("dpo")["kernels"], Json::array({"rms_norm"}));
  EXPECT_GT(estimate(job("orpo")).allocated.point, 0);
  EXPECT_GT(estimate(job("dpo")).allocated.point, 0);
  EXPECT_THAT(error_of("base_model: x\ndatasets: []\nmicro_batch_size: 1\nrl: nca\n"),
              HasSubstr("'nca' is not estimated"));
}

TEST(ImportPreference, LlamaFactorysStages) {
  const auto job = [](const std::string& stage) {
    return job_of(R"(
model_name_or_path: Qwen/Qwen2.5-0.5B
finetuning_type: lora
template: qwen
cutoff_len: 1024
per_device_train_batch_size: 1
bf16: true
enable_liger_kernel: true
stage: )" + stage +
                  "\n");
  };
  EXPECT_EQ(job("kto")["workload"]["algorithm"], "kto");
  EXPECT_EQ(job("rm")["workload"]["algorithm"], "reward");
  EXPECT_EQ(job("dpo\npref_loss: orpo")["workload"]["algorithm"], "orpo");
  EXPECT_EQ(job("dpo\npref_loss: simpo")["workload"]["algorithm"], "cpo");
  const Json dpo = job("dpo\npref_loss: sigmoid");
  EXPECT_EQ(dpo["workload"]["algorithm"], "dpo");
  for (const Json& kernel : dpo["kernels"])
    EXPECT_THAT(kernel.get<std::string>(), Not(HasSubstr("entropy")));
  EXPECT_GT(estimate(dpo).allocated.point, 0);
  EXPECT_GT(estimate(job("rm")).allocated.point, 0);
  const std::string asft =
      "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: sft\ndo_train: true\n"
      "use_asft_loss: true\ncutoff_len: 1024\nfinetuning_type: ";
  const Json anchored = job_of(asft + "full\n")["workload"];
  EXPECT_EQ(anchored["algorithm"], "asft");
  EXPECT_EQ(anchored["sequence_length"], 1024);
  EXPECT_THAT(error_of(asft + "lora\n"), HasSubstr("'NoneType' object is not callable"));
  EXPECT_THAT(error_of("model_name_or_path: x\nfinetuning_type: full\nstage: ppo\n"),
              HasSubstr("the actor's own network"));
}

TEST(ImportPreference, SwiftsAlgorithms) {
  const auto job = [](const std::string& type) {
    return job_of(
        "NPROC_PER_NODE=8 swift rlhf --model Qwen/Qwen2.5-0.5B --tuner_type lora "
        "--per_device_train_batch_size 1 --rlhf_type " +
        type + "\n");
  };
  EXPECT_EQ(job("simpo")["workload"]["algorithm"], "cpo");
  EXPECT_EQ(job("kto")["workload"]["algorithm"], "kto");
  EXPECT_EQ(job("rm")["workload"]["algorithm"], "reward");
  EXPECT_FALSE(job("grpo")["workload"].contains("reference"));  // its coefficient is 0.04
  EXPECT_EQ(job("grpo --beta 0")["workload"]["reference"], "none");
  EXPECT_THAT(error_of("swift rlhf --model Qwen/Qwen2.5-0.5B --rlhf_type spin\n"),
              HasSubstr("'spin' is not estimated"));
}

TEST(ImportPreference, EveryWordIsOneOfAnAlgorithm) {
  EXPECT_EQ(algorithm_word("RM"), "reward");
  EXPECT_EQ(algorithm_word("dr-grpo"), "grpo");
  EXPECT_EQ(algorithm_word("sft"), "");
  EXPECT_EQ(algorithm_word("sgd"), "");
}

/// AsyncGRPOConfig (TRL 1.16, experimental/async_grpo): a server runs ahead, and no reference is
/// asked.
TEST(ImportTrl, AsynchronousGrpoRunsAhead) {
  const std::string file =
      "model_name_or_path: Qwen/Qwen3-0.6B\nper_device_train_batch_size: 4\n"
      "max_completion_length: 256\nbf16: true\noutput_dir: out\nmax_staleness: 2\n";
  const Json work = importing::job_of(file, {{"cluster", "4xH100"}})["workload"];
  EXPECT_EQ(work["algorithm"], "grpo");
  EXPECT_EQ(work["reference"], "none");
  EXPECT_EQ(work["rollout"]["placement"], "separate");
  EXPECT_EQ(work["rollout"]["steps_off_policy"], 2);
  EXPECT_FALSE(work["rollout"].contains("answers_in_work"));
  const Json more =
      importing::job_of(file + "max_inflight_tasks: 64\n", {{"cluster", "4xH100"}})["workload"];
  EXPECT_EQ(more["rollout"]["answers_in_work"], 64);
  const Json program = importing::job_of(
      "from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer\n"
      "config = AsyncGRPOConfig(output_dir='out', per_device_train_batch_size=4)\n"
      "trainer = AsyncGRPOTrainer(model='Qwen/Qwen3-0.6B', args=config)\n",
      {{"cluster", "4xH100"}})["workload"];
  EXPECT_EQ(program["rollout"]["steps_off_policy"], 4);
  EXPECT_EQ(program["new_tokens"], 2048);
}

}  // namespace
}  // namespace shardplan::importing::preference_test
