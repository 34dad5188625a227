// OpenRLHF's launch scripts, as versions before and since its arguments have groups write them.
#include <gmock/gmock.h>

#include "estimate/rlhf.h"
#include "export/export.h"
#include "import_testing.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "support/error_of.h"

namespace shardplan::importing::openrlhf_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Json kGpus{{"cluster", "H100-80GB"}};

constexpr const char* kPpo = R"(set -x
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json='{"working_dir": "/openrlhf"}' \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref.num_gpus_per_node 4 --reward.num_gpus_per_node 4 --critic.num_gpus_per_node 4 \
   --actor.num_gpus_per_node 4 --train.colocate_all \
   --vllm.num_engines 2 --vllm.tensor_parallel_size 2 --vllm.gpu_memory_utilization 0.4 \
   --vllm.enable_sleep --vllm.enforce_eager --vllm.sync_backend nccl --ds.enable_sleep \
   --actor.model_name_or_path qwen2.5-7b --reward.model_name_or_path llama-3.1-8b \
   --train.batch_size 64 --rollout.batch_size 256 \
   --train.dynamic_batch_enable --train.max_tokens_per_gpu 8192 \
   --data.max_len 4096 --rollout.max_new_tokens 3072 \
   --ds.zero_stage 3 --ds.param_dtype bf16 --ds.packing_samples \
   --actor.gradient_checkpointing_enable --actor.adam.lr 5e-7 --algo.kl.init_coef 0.01 \
   --ckpt.output_dir ./ckpt --data.prompt_dataset some/prompts --reward.normalize_enable MORE
)";

std::string with(const std::string& more) {
  std::string script = kPpo;
  script.replace(script.find(" MORE"), 5, " " + more);
  return script;
}
std::string without(std::string script, const std::string& words) {
  script.erase(script.find(words), words.size());
  return script;
}

/// The engine on GPUs of its own, which goes on while the actor trains.
std::string beside() {
  const std::string others = without(
      without(with("--train.colocate_actor_ref --train.async_enable --train.async_queue_size 2"),
              "--train.colocate_all "),
      "--vllm.enable_sleep ");
  return without(others, "--critic.num_gpus_per_node 4 ");
}

/// Models on GPUs of their own, as `flags` say.
std::string apart(const std::string& flags) {
  return without(without(with(flags), "--train.colocate_all "), "--vllm.enable_sleep ");
}

Job loaded(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(job, "job", {.hardware = &hardware, .directory = ""});
}
Json job(const std::string& script) {
  Json imported = job_of(script, kGpus);
  loaded(imported);
  return imported;
}

TEST(ImportOpenRlhf, TakesFourModelsAndTheirEngines) {
  const Json ppo = job(with(""));
  EXPECT_EQ(ppo["cluster"], "1x4xH100-80GB");
  EXPECT_EQ(ppo["trainer"], "openrlhf");
  EXPECT_EQ(ppo["checkpointing"], "full");
  EXPECT_EQ(ppo["framework"]["ds_config"]["zero_optimization"]["stage"], 3);
  const Json& work = ppo["workload"];
  EXPECT_EQ(work["algorithm"], "ppo");
  EXPECT_EQ(work["prompt_length"], 1024);
  EXPECT_EQ(work["new_tokens"], 3072);
  EXPECT_EQ(work["token_budget"], 8192);
  EXPECT_EQ(work["scoring_tokens"], 8192);
  EXPECT_EQ(work["gradient_accumulation"], 8);  // 64 over 4 × 2
  EXPECT_EQ(work["generation_batch"], 64);
  EXPECT_EQ(work["models"]["critic"], (Json{{"idle", "optimizer"}, {"model", "llama-3.1-8b"}}));
  EXPECT_EQ(work["models"]["reward"], (Json{{"model", "llama-3.1-8b"}}));
  EXPECT_EQ(work["rollout"]["sleep_level"], 1);
  EXPECT_EQ(work["rollout"]["cuda_graphs"], false);
  EXPECT_EQ(work["rollout"]["prefix_caching"], false);
}

/// The same in the words of versions before 0.10.2, whose micro-batches are 4 and 8.
TEST(ImportOpenRlhf, TakesArgumentsWithoutGroups) {
  const Json grpo = job(R"(python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 --ref_num_gpus_per_node 8 --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
   --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --colocate_all_models \
   --vllm_gpu_memory_utilization 0.6 --advantage_estimator group_norm --use_kl_loss \
   --pretrain llama-3.1-8b --remote_rm_url /somewhere/reward.py --n_samples_per_prompt 8 \
   --train_batch_size 128 --rollout_batch_size 128 --prompt_max_len 1024 --generate_max_len 2048 \
   --zero_stage 3 --bf16 --flash_attn --adam_offload --gradient_checkpointing --enforce_eager \
   --actor_learning_rate 5e-7 --init_kl_coef 1e-3 --ref_reward_offload --lambd 1 --gamma 1.0)");
  const Json& work = grpo["workload"];
  EXPECT_EQ(work["algorithm"], "grpo");
  EXPECT_EQ(work["micro_batch"], 4);
  EXPECT_EQ(work["scoring_batch"], 8);
  EXPECT_EQ(work["generation_batch"], 128);
  EXPECT_EQ(work["rollout"]["completions"], 8);
  const Json& zero = grpo["framework"]["ds_config"]["zero_optimization"];
  EXPECT_EQ(zero["offload_optimizer"]["device"], "cpu");
  const Json& reference = work["models"]["reference"]["framework"]["ds_config"];
  EXPECT_EQ(reference["zero_optimization"]["offload_param"]["device"], "cpu");
}

/// A text that `read` takes from the lines that follow, and DeepSpeed's --module.
TEST(ImportOpenRlhf, TakesACommandFromTheLinesBelow) {
  const Json sft = job_of(R"(set -x
read -r -d '' training_commands <<EOF
openrlhf.cli.train_sft \
   --data.max_len 2048 \
   --train.batch_size 256 --train.micro_batch_size 2 \
   --model.model_name_or_path llama-3.1-8b \
   --ds.zero_stage 2 --ds.param_dtype bf16 --ds.lora.rank 64 --ds.lora.alpha 64 \
   --ds.lora.target_modules q_proj v_proj \
   --model.gradient_checkpointing_enable
EOF
if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi)",
                          {{"cluster", "8xH100-80GB"}});
  EXPECT_EQ(sft["workload"]["gradient_accumulation"], 16);
  EXPECT_EQ(sft["workload"]["sequence_length"], 2048);
  EXPECT_EQ(sft["workload"]["lora"]["targets"], (Json{"q_proj", "v_proj"}));
  EXPECT_EQ(sft["workload"]["lora"]["rank"], 64);
  loaded(sft);
}

/// srun starts a shell, whose text has the command.
TEST(ImportOpenRlhf, TakesACommandInsideOfQuotes) {
  const Json inner = job(R"(srun --nodes=1 bash -c "pip install ray && ray job submit \
    --runtime-env-json='{\"working_dir\": \"/openrlhf\"}' -- python3 -m openrlhf.cli.train_ppo_ray \
    --actor.num_gpus_per_node 4 --ref.num_gpus_per_node 4 --train.colocate_actor_ref \
    --actor.model_name_or_path qwen2.5-7b --reward.model_name_or_path qwen2.5-7b \
    --vllm.num_engines 4 --ds.zero_stage 3" &>> log)");
  EXPECT_EQ(inner["cluster"], "1x4xH100-80GB");
  EXPECT_EQ(inner["workload"]["rollout"]["placement"], "separate");
  EXPECT_EQ(inner["workload"]["rollout"]["gpus"], 4);
  EXPECT_EQ(inner["workload"]["rollout"]["same_machines"], true);
  EXPECT_EQ(job(beside())["workload"]["rollout"]["steps_off_policy"], 2);
  EXPECT_EQ(inner["workload"]["rollout"]["gpu_memory_utilization"], 0.95);
}

/// The critic and the reward model are on other GPUs, together or each on its own.
TEST(ImportOpenRlhf, PlacesModelsOnGpusOfTheirOwn) {
  const Json each = job(apart("--train.colocate_actor_ref"));
  const Json& models = each["workload"]["models"];
  EXPECT_EQ(each["workload"]["algorithm"], "ppo");
  EXPECT_EQ(models["critic"]["gpus"], 4);
  EXPECT_EQ(models["reward"]["gpus"], 4);
  EXPECT_FALSE(models.contains("reference"));
  const Rlhf placed = *loaded(each).rlhf;
  ASSERT_EQ(placed.apart.size(), 2U);
  EXPECT_EQ(placed.roles.size(), 2U);  // actor and reference
  const Json together = job(apart("--train.colocate_critic_reward"));
  EXPECT_EQ(together["workload"]["models"]["reward"]["beside"], "critic");
  EXPECT_EQ(together["workload"]["models"]["reference"]["gpus"], 4);
  EXPECT_EQ(loaded(together).rlhf->apart.size(), 2U);
}

TEST(ImportOpenRlhf, TakesRingAttentionAndLongSamples) {
  const Json ring = job(with("--ds.ring_attn_size 2 --data.max_len 40960"));
  EXPECT_EQ(ring["parallel"]["sequence"], 2);
  EXPECT_EQ(ring["workload"]["token_budget"], 20480);  // 8192 hold none: a batch of its own
  EXPECT_EQ(ring["workload"]["micro_batch"], 1);
}

TEST(ImportOpenRlhf, TakesPairsAndRewardModels) {
  const std::string more =
      " --pretrain qwen2.5-7b --micro_train_batch_size 2 --train_batch_size 64 --zero_stage 3 "
      "--max_len 1024 --bf16 --ref_offload --beta 0.1 --learning_rate 5e-7 --l2 0.0";
  const Json gpus{{"cluster", "8xH100-80GB"}};
  const Json dpo = job_of("deepspeed --module openrlhf.cli.train_dpo" + more, gpus);
  EXPECT_EQ(dpo["workload"]["algorithm"], "dpo");
  EXPECT_EQ(dpo["workload"]["gradient_accumulation"], 4);
  EXPECT_TRUE(dpo["workload"]["models"].contains("reference"));
  loaded(dpo);
  const Json reward = job_of("deepspeed --module openrlhf.cli.train_rm" + more, gpus);
  EXPECT_EQ(reward["workload"]["algorithm"], "reward");
  EXPECT_FALSE(reward["workload"].contains("models"));
  loaded(reward);
}

TEST(ImportOpenRlhf, PassesOverProgramsThatTrainNothing) {
  const Json two = job_of(R"(
python -m openrlhf.cli.batch_inference --eval_task generate --pretrain other/model
deepspeed --module openrlhf.cli.train_sft --pretrain qwen2.5-7b --micro_train_batch_size 2)",
                          {{"cluster", "8xH100-80GB"}});
  EXPECT_EQ(two["model"], "qwen2.5-7b");
}

TEST(ImportOpenRlhf, RefusesWithTheArgumentAndTheFigure) {
  const auto refused = [](const std::string& script) { return error_of(script, kGpus); };
  EXPECT_THAT(refused(with("--vllm.num_engines 8")),
              AllOf(HasSubstr("vllm.num_engines"), HasSubstr("8 engines of 2 GPUs"),
                    HasSubstr("expected 2")));
  EXPECT_THAT(refused(with("--ref.num_gpus_per_node 8")),
              AllOf(HasSubstr("ref.num_gpus_per_node"), HasSubstr("expected 4 in all")));
  EXPECT_THAT(refused(with("--ds.zero_stge 2")), HasSubstr("ds.zero_stage"));
  EXPECT_THAT(refused(with("--algo.advantage.estimator vtrace")), HasSubstr("group_norm"));
  EXPECT_THAT(refused(with("--train.async_enable")), HasSubstr("does not sleep"));
  EXPECT_THAT(refused(with("--ds.tensor_parallel_size 2")), HasSubstr("expected 1"));
  EXPECT_THAT(refused(with("--train.enable_ema --ds.zero_stage 2")), HasSubstr("stage 3"));
  EXPECT_THAT(refused(with("--ds.load_in_4bit")), HasSubstr("lora_rank"));
  EXPECT_THAT(refused("deepspeed --module openrlhf.cli.train_kd --pretrain qwen2.5-7b"),
              AllOf(HasSubstr("openrlhf.cli.train_kd"), HasSubstr("train_sft")));
}

Estimate answer_of(const Job& job) {
  const Calibration calibration = load_calibration();
  return job.rlhf ? estimate_rlhf(*job.rlhf, calibration)
                  : estimate(job.model, job.plan, calibration);
}

/// A script that is read, written and read again gives the same job.
TEST(ExportOpenRlhf, WritesWhatItReads) {
  const std::string one =
      " --pretrain qwen2.5-7b --micro_train_batch_size 2 --train_batch_size 64 --zero_stage 3 "
      "--max_len 1024 --bf16 --gradient_checkpointing";
  const std::string deepspeed = "deepspeed --num_nodes 1 --num_gpus 8 --module openrlhf.cli.";
  const std::string grpo =
      without(with("--rollout.n_samples_per_prompt 8 --algo.advantage.estimator rloo "
                   "--actor.entropy_coef 0 --ds.ring_attn_size 2 --ds.adam_offload"),
              "--train.dynamic_batch_enable ");
  for (const std::string& script :
       {with(""), beside(), apart("--train.colocate_actor_ref"),
        apart("--train.colocate_critic_reward"), with("--reward.remote_url f.py --ref.offload"),
        grpo, deepspeed + "train_sft" + one + " --lora_rank 8 --load_in_4bit",
        deepspeed + "train_sft" + one + " --use_liger_kernel --zpg 2",
        deepspeed + "train_dpo" + one + " --ref_offload --ring_attn_size 2",
        deepspeed + "train_rm" + one + " --overlap_comm --zero_stage 2"}) {
    const Json first = job_of(script, kGpus);
    const Job before = loaded(first);
    const Estimate answer = answer_of(before);
    const ExportedFile file = export_as("openrlhf", first, before, answer);
    const Json second = job_of(file.text, kGpus);
    EXPECT_EQ(first, second) << file.text << Json::diff(first, second).dump(2);
    EXPECT_EQ(answer.device.point, answer_of(loaded(second)).device.point) << file.text;
  }
}

TEST(ExportOpenRlhf, RefusesWhatNoArgumentSays) {
  const auto refused = [](const char* patch) {
    Json asked = job_of(with(""), kGpus);
    asked.merge_patch(Json::parse(patch));
    const Job job = loaded(asked);
    const Estimate answer = answer_of(job);
    return error_text([&] { export_as("openrlhf", asked, job, answer); });
  };
  EXPECT_THAT(refused(R"({"trainer": "trl"})"), HasSubstr("trainer: "));
  EXPECT_THAT(refused(R"({"framework": {"ds_config": {"zero_optimization":
                          {"reduce_bucket_size": 100000000}}}})"),
              HasSubstr("reduce_bucket_size"));
  EXPECT_THAT(refused(R"({"workload": {"rollout": {"max_num_seqs": 64}}})"),
              AllOf(HasSubstr("max_num_seqs"), HasSubstr("128")));
  EXPECT_THAT(refused(R"({"workload": {"models": {"critic": {"idle": "host"}}}})"),
              HasSubstr("models.critic.idle"));
}

}  // namespace
}  // namespace shardplan::importing::openrlhf_test
