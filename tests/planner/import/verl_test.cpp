// verl's command lines and YAML: what its workers run of them.
#include <gmock/gmock.h>

#include "export/export.h"
#include "import_testing.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/estimate_job.h"
#include "support/error_of.h"

namespace shardplan::importing::verl_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kScript = R"(set -x
model=Qwen/Qwen2.5-0.5B-Instruct
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_batch_size=512 \
    data.max_prompt_length=512 \
    data.max_response_length=1536 \
    actor_rollout_ref.model.path=$model \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=128 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=16 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
    actor_rollout_ref.rollout.name=sglang \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
    actor_rollout_ref.rollout.n=4 \
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=32 \
    trainer.n_gpus_per_node=8 \
    trainer.nnodes=1 $@
)";

std::string with(const std::string& more) {
  std::string script = kScript;
  script.replace(script.find(" $@"), 3, " " + more);
  return script;
}

Json loaded(const std::string& script) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Json job = job_of(script);
  load_job(job, "job", {.hardware = &hardware, .directory = ""});
  return job;
}

TEST(ImportVerl, TakesAScriptAsItsWorkersRunIt) {
  const Json job = loaded(kScript);
  EXPECT_EQ(job["trainer"], "verl");
  EXPECT_EQ(job["framework"]["name"], "fsdp1");
  EXPECT_EQ(job["framework"]["reduce_dtype"], "fp32");
  EXPECT_EQ(job["precision"], "bf16-autocast");
  EXPECT_EQ(job["checkpointing"], "full");
  EXPECT_EQ(job["optimizer"]["implementation"], "foreach");
  const Json& work = job["workload"];
  EXPECT_EQ(work["algorithm"], "grpo");
  EXPECT_EQ(work["micro_batch"], 8);
  EXPECT_EQ(work["gradient_accumulation"], 128 * 4 / 8 / 8);
  EXPECT_EQ(work["generation_batch"], 512 * 4 / 8);
  EXPECT_EQ(work["scoring_batch"], 32);
  EXPECT_EQ(work["models"]["actor"]["idle"], "optimizer");
  EXPECT_EQ(work["models"]["reference"]["framework"]["cpu_offload"], true);
  const Json& rollout = work["rollout"];
  EXPECT_EQ(rollout["engine"], "sglang");
  EXPECT_EQ(rollout["gpu_memory_utilization"], 0.6);
  EXPECT_EQ(rollout["sleep_level"], 2);
  EXPECT_EQ(rollout["weight_bucket"], std::int64_t{2048} << 20);
  EXPECT_EQ(rollout["completions"], 4);
  EXPECT_FALSE(rollout.contains("prefix_caching"));
  const Json without = loaded(with("actor_rollout_ref.rollout.enable_prefix_caching=False"));
  EXPECT_EQ(without["workload"]["rollout"]["prefix_caching"], false);
}

TEST(ImportVerl, TakesBudgetsAndUlysses) {
  const Json job =
      loaded(with("actor_rollout_ref.actor.use_dynamic_bsz=True "
                  "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192 "
                  "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 "
                  "actor_rollout_ref.actor.strategy=fsdp2"));
  EXPECT_EQ(job["framework"]["name"], "fsdp2");
  EXPECT_EQ(job["parallel"]["sequence"], 2);
  EXPECT_EQ(job["workload"]["token_budget"], 8192);
  EXPECT_EQ(job["workload"]["scoring_tokens"], 8192);
  EXPECT_EQ(job["workload"]["micro_batch"], 8);  // 16,384 tokens of a pair of GPUs
}

TEST(ImportVerl, RunsACriticWhereAdvantagesAskOne) {
  const Json job =
      loaded(with("algorithm.adv_estimator=gae critic.ppo_micro_batch_size_per_gpu=4 "
                  "critic.model.path=Qwen/Qwen2.5-1.5B critic.model.fsdp_config.param_offload=True "
                  "actor_rollout_ref.actor.use_kl_loss=False"));
  const Json& work = job["workload"];
  EXPECT_EQ(work["algorithm"], "ppo");
  EXPECT_EQ(work["rewards"], "function");
  EXPECT_EQ(work["reference"], "none");
  EXPECT_EQ(work["models"]["critic"]["model"], "Qwen/Qwen2.5-1.5B");
  EXPECT_EQ(work["models"]["critic"]["idle"], "parameters");
  EXPECT_EQ(work["models"]["critic"]["workload"]["micro_batch"], 4);
}

TEST(ImportVerl, TakesAdaptersWithTheBaseAsReference) {
  const Json job = loaded(
      with("actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.target_modules=all-linear "
           "actor_rollout_ref.rollout.layered_summon=True"));
  EXPECT_EQ(job["workload"]["reference"], "base");
  EXPECT_EQ(job["workload"]["lora"]["rank"], 32);
  EXPECT_EQ(job["workload"]["rollout"]["sleep_level"], 1);
}

TEST(ImportVerl, FollowsReferencesOfHydra) {
  const Json job = loaded(R"(
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-0.5B}
  actor:
    ppo_micro_batch_size_per_gpu: ${oc.select:data.each,1}
    use_kl_loss: false
  rollout:
    name: ???
    tensor_model_parallel_size: 1
    log_prob_micro_batch_size_per_gpu: ${actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu}
data: {each: 4, train_batch_size: 64}
algorithm: {adv_estimator: rloo}
)");
  EXPECT_EQ(job["workload"]["micro_batch"], 4);
  EXPECT_EQ(job["workload"]["scoring_batch"], 4);
  EXPECT_EQ(job["workload"]["rollout"]["engine"], "vllm");
}

TEST(ImportVerl, TakesWorkersUnderMegatron) {
  const Json job = loaded(with(
      "--config-name=ppo_megatron_trainer.yaml "
      "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
      "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 "
      "actor_rollout_ref.ref.megatron.tensor_model_parallel_size=1 "
      "actor_rollout_ref.actor.megatron.param_offload=True "
      "actor_rollout_ref.actor.megatron.optimizer_offload=True "
      "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full"));
  EXPECT_EQ(job["framework"]["name"], "megatron");
  EXPECT_EQ(job["precision"], "bf16-master");
  EXPECT_FALSE(job.contains("trainer"));
  EXPECT_EQ(job["parallel"]["tensor"], 2);
  EXPECT_EQ(job["parallel"]["pipeline"], 2);
  EXPECT_EQ(job["checkpointing"], "full");
  const Json& work = job["workload"];
  EXPECT_EQ(work["gradient_accumulation"], 128 * 4 / 2 / 8);  // two copies of the network
  EXPECT_EQ(work["models"]["actor"]["idle"], "host");
  EXPECT_EQ(work["models"]["reference"]["parallel"]["tensor"], 1);
  EXPECT_EQ(work["models"]["reference"]["idle"], "host");
  EXPECT_EQ(work["scoring_entropy"], "compiled");
}

TEST(ImportVerl, RefusesWithTheKeyAndTheFigure) {
  const auto error = [](const std::string& more) {
    return error_text([&] { loaded(with(more)); });
  };
  EXPECT_THAT(error("actor_rollout_ref.rollout.name=trtllm"), HasSubstr("vllm, sglang or hf"));
  EXPECT_THAT(error("algorithm.adv_estimator=magic"), HasSubstr("algorithm.adv_estimator"));
  EXPECT_THAT(error("actor_rollout_ref.model.mtp.enable=True"), HasSubstr("mtp.enable"));
  EXPECT_THAT(error("actor_rollout_ref.actor.use_dynamic_bsz=True "
                    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=1024"),
              HasSubstr("at least 2048"));
  EXPECT_THAT(error("reward_model.enable=True reward_model.rollout.name=trtllm"),
              HasSubstr("reward_model.rollout.name"));
}

TEST(ImportVerl, RunsARewardModelInAnEngineOfItsOwn) {
  const Json job =
      loaded(with("reward_model.enable=True reward_model.model.path=meta-llama/Llama-3.1-8B "
                  "reward_model.rollout.name=vllm reward_model.rollout.gpu_memory_utilization=0.8 "
                  "reward_model.rollout.tensor_model_parallel_size=1 "
                  "reward_model.rollout.response_length=1024"));
  const Json& reward = job["workload"]["models"]["reward"];
  EXPECT_EQ(reward["model"], "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(reward["engine"]["gpu_memory_utilization"], 0.8);
  EXPECT_EQ(reward["engine"]["tensor_parallel"], 1);
  EXPECT_EQ(reward["engine"]["max_model_length"], 2048 + 1024);
  EXPECT_EQ(reward["engine"]["sleep_level"], 1);  // its weights wait on the host
  EXPECT_EQ(reward["engine"]["cuda_graphs"], false);
  EXPECT_FALSE(reward.contains("framework"));
}

TEST(ImportVerl, ReadsAProgramThatAVariableHasInSeveralWords) {
  const auto script = [](const std::string& program, const std::string& model) {
    return "ENTRYPOINT=${ENTRYPOINT:-\"-m verl.trainer." + program +
           "\"}\ntorchrun --standalone --nnodes=1 --nproc_per_node=8 ${ENTRYPOINT} " + model +
           "=Qwen/Qwen2.5-0.5B\n";
  };
  const Json job =
      job_of(script("fsdp_sft_trainer", "model.partial_pretrain"), {{"cluster", "8xH100"}});
  EXPECT_EQ(job["model"], "Qwen/Qwen2.5-0.5B");
  // Never read as reinforcement learning.
  const Json engine = job_of(script("sft_trainer", "model.path"), {{"cluster", "8xH100"}});
  EXPECT_FALSE(engine.at("workload").contains("algorithm"));
}

/// verl/trainer/config/sft_trainer_engine.yaml, config/engine/fsdp.yaml.
constexpr const char* kEngines =
    "torchrun --standalone --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer "
    "model.path=Qwen/Qwen2.5-0.5B ";

TEST(ImportVerl, ReadsTheSupervisedTrainerOfEngines) {
  const Json job = job_of(kEngines + std::string("\n"), {{"cluster", "8xH100"}});
  EXPECT_EQ(job.at("framework").at("name"), "fsdp1");
  EXPECT_EQ(job.at("precision"), "bf16-autocast");
  EXPECT_EQ(job.at("trainer"), "verl");
  EXPECT_EQ(job.at("checkpointing"), "full");
  const Json& work = job.at("workload");
  EXPECT_EQ(work.at("sequence_length"), 1024);
  EXPECT_EQ(work.at("micro_batch"), 8);            // 8,192 tokens
  EXPECT_EQ(work.at("gradient_accumulation"), 4);  // 256 over 8 GPUs, 8 at a time
}

/// config/model/hf_model.yaml: four unless said.
TEST(ImportVerl, RunsFeedForwardsInParts) {
  const auto tiles = [](const std::string& more) {
    return job_of(kEngines + ("engine.strategy=fsdp2 " + more) + "\n", {{"cluster", "8xH100"}})
        .value("mlp_tiles", 0);
  };
  EXPECT_EQ(tiles("model.tiled_mlp.enabled=True"), 4);
  EXPECT_EQ(tiles("model.tiled_mlp.enabled=True model.tiled_mlp.num_shards=8"), 8);
  EXPECT_EQ(tiles("model.tiled_mlp.num_shards=8"), 0);
}

TEST(ImportVerl, FillsMicroBatchesOfItsEnginesUpToTheBudget) {
  const auto work = [](const std::string& more) {
    return job_of(kEngines + more + "\n", {{"cluster", "8xH100"}}).at("workload");
  };
  // Two GPUs share a sample and their budgets.
  const Json shared = work(
      "data.max_length=2048 data.max_token_len_per_gpu=8192 "
      "engine.ulysses_sequence_parallel_size=2");
  EXPECT_EQ(shared.at("micro_batch"), 8);
  EXPECT_EQ(shared.at("gradient_accumulation"), 8);
  // Never more than a GPU's part of a step, never less than the budget holds.
  EXPECT_EQ(work("data.train_batch_size=16").at("micro_batch"), 2);
  EXPECT_EQ(work("data.max_token_len_per_gpu=2500").at("micro_batch"), 3);
  // Longer samples stop the trainer.
  EXPECT_EQ(work("data.max_length=4096 data.max_token_len_per_gpu=2048").at("sequence_length"),
            2048);
  EXPECT_EQ(work("data.use_dynamic_bsz=False").at("micro_batch"), 4);
}

TEST(ImportVerl, RefusesEnginesThatAreNotEstimatedByTheirKey) {
  const auto error = [](const std::string& more) {
    return error_of(kEngines + more + "\n", {{"cluster", "8xH100"}});
  };
  EXPECT_THAT(error("engine=megatron"), HasSubstr("engine: the engine 'megatron'"));
  // Beside keys of the group, before and behind them.
  for (const char* both :
       {"engine=veomni engine.strategy=fsdp2", "engine.dtype=bfloat16 engine=veomni"})
    EXPECT_THAT(error(both), HasSubstr("the engine 'veomni'"));
  EXPECT_THAT(error("engine.strategy=ddp"), HasSubstr("engine.strategy: 'ddp' is not estimated"));
  EXPECT_THAT(error("model.mtp.enable=True"), HasSubstr("mtp"));
}

TEST(ImportVerl, ShardsEnginesInGroupsWhereAsked) {
  const auto framework = [](const std::string& more) {
    return job_of(kEngines + more + "\n", {{"cluster", "8xH100"}}).at("framework");
  };
  EXPECT_EQ(framework("engine.fsdp_size=2").at("hybrid_shard_size"), 2);
  EXPECT_FALSE(framework("engine.fsdp_size=8").contains("hybrid_shard_size"));
  EXPECT_EQ(framework("engine=fsdp optim=fsdp engine.strategy=fsdp2 optim.lr=1e-5").at("name"),
            "fsdp2");
}

ExportedFile exported(const Json& asked) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Job job = load_job(asked, "job", {.hardware = &hardware, .directory = ""});
  return export_as("verl", asked, job, estimate_job(job, load_calibration()));
}

// Its recipe of one step behind, and the fully asynchronous one.
TEST(ImportVerl, GivesAnEngineItsOwnGpus) {
  const Json one =
      loaded(with("actor_rollout_ref.hybrid_engine=False rollout.nnodes=2 "
                  "rollout.n_gpus_per_node=4"));
  const Json& rollout = one["workload"]["rollout"];
  EXPECT_EQ(rollout["gpus"], 8);
  EXPECT_EQ(rollout["steps_off_policy"], 1);
  EXPECT_FALSE(rollout.contains("same_machines"));
  const Json all =
      loaded(with("rollout.n_gpus_per_node=4 async_training.staleness_threshold=0.5 "
                  "async_training.trigger_parameter_sync_step=2"));
  EXPECT_EQ(all["workload"]["rollout"]["steps_off_policy"], 1);
  EXPECT_EQ(all["workload"]["generation_batch"], 2 * 128 * 4 / 8);
  // Sixteen prompts of four answers in each of two engines.
  EXPECT_EQ(all["workload"]["rollout"]["answers_in_work"], 2 * 16 * 4);
  const Json whole =
      loaded(with("rollout.n_gpus_per_node=4 async_training.staleness_threshold=0.5 "
                  "async_training.partial_rollout=False "
                  "actor_rollout_ref.rollout.calculate_log_probs=True"));
  EXPECT_FALSE(whole["workload"]["rollout"].contains("answers_in_work"));
  EXPECT_EQ(whole["workload"]["rollout"]["log_probabilities"], true);
  const Json none = loaded(with("rollout.n_gpus_per_node=4 async_training.staleness_threshold=0"));
  EXPECT_FALSE(none["workload"]["rollout"].contains("steps_off_policy"));
  EXPECT_EQ(none["workload"]["rollout"]["streaming"], true);
  EXPECT_EQ(none["workload"]["rollout"]["answers_in_work"], 2 * 16 * 4);
}

// A configuration that is written has the same job in it.
TEST(ExportVerl, WritesWhatItReads) {
  for (const char* more :
       {"", "actor_rollout_ref.hybrid_engine=False rollout.n_gpus_per_node=4",
        "rollout.n_gpus_per_node=4 async_training.staleness_threshold=1 "
        "async_training.trigger_parameter_sync_step=2",
        "rollout.n_gpus_per_node=4 async_training.staleness_threshold=0 "
        "async_training.trigger_parameter_sync_step=4",
        "rollout.n_gpus_per_node=4 async_training.staleness_threshold=3 "
        "async_training.partial_rollout=False",
        "algorithm.adv_estimator=gae critic.model.path=Qwen/Qwen2.5-1.5B "
        "critic.ppo_micro_batch_size_per_gpu=4 critic.model.fsdp_config.param_offload=True "
        "reward_model.enable=True reward_model.model.path=Qwen/Qwen2.5-3B",
        "algorithm.adv_estimator=gae critic.model.path=Qwen/Qwen2.5-1.5B "
        "critic.use_dynamic_bsz=True reward_model.enable=True reward_model.use_reward_loop=False "
        "reward_model.model.path=Qwen/Qwen2.5-3B reward_model.micro_batch_size_per_gpu=2",
        "actor_rollout_ref.actor.use_dynamic_bsz=True "
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384",
        "actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.target_modules=all-linear "
        "actor_rollout_ref.rollout.layered_summon=True",
        "actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.entropy_coeff=0.01 "
        "actor_rollout_ref.actor.fsdp_config.fsdp_size=4 "
        "actor_rollout_ref.rollout.max_model_len=4096",
        "actor_rollout_ref.actor.use_kl_loss=False actor_rollout_ref.actor.use_torch_compile=False "
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2",
        "actor_rollout_ref.actor.strategy=megatron "
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
        "actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full "
        "actor_rollout_ref.actor.megatron.param_offload=True"}) {
    const Json job = loaded(with(more));
    const ExportedFile file = exported(job);
    EXPECT_EQ(job_of(file.text).dump(1), job.dump(1)) << more << "\n" << file.text;
  }
}

TEST(ExportVerl, RefusesWhatNoKeySays) {
  const Json job = loaded(kScript);
  const auto refusal = [&](const char* field, const Json& value) {
    Json other = job;
    other[Json::json_pointer(field)] = value;
    return error_text([&] { exported(other); });
  };
  EXPECT_THAT(refusal("/workload/rollout/sleep_level", 1), HasSubstr("sleep_level"));
  EXPECT_THAT(refusal("/workload/rollout/placement", "separate"), HasSubstr("placement"));
  EXPECT_THAT(refusal("/workload/models/reference/framework/cpu_offload", false),
              HasSubstr("workload.models.reference"));
  EXPECT_THAT(refusal("/trainer", "trl"), HasSubstr("trainer"));
}

}  // namespace
}  // namespace shardplan::importing::verl_test
