// verl's YAML and command lines (0.8: verl/trainer/config). A file says what differs from the
// trainer's own; Hydra's overrides on a command line are the same keys.
#include <fmt/format.h>

#include <array>

#include "import/kinds/hydra_references.h"
#include "import/kinds/kind.h"
#include "import/kinds/verl_config.h"
#include "import/kinds/verl_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing::verl {
namespace {

bool is_verl(const Document& d) {
  return has_any(d, {"actor_rollout_ref", "actor_rollout_ref.model.path"}) ||
         d.program.find("verl.trainer") != std::string::npos ||
         (has_any(d, {"model.partial_pretrain"}) && has_any(d, {"optim", "trainer"}));
}

/// Its value is read with those of other keys.
void read_with_others(Key&) {}

void read_optimizer_name(Key& key) {
  const std::string name = key.text();
  if (name == "AdamW") return key.ignore("PyTorch's AdamW");
  if (name == "adam") return key.ignore("Adam of Megatron-LM");
  if (name == "AdamW8bit" || name == "_AdamW8bit")
    return key.take("/optimizer", Json{{"name", "adamw_8bit"}});
  key.refuse(fmt::format("the optimizer '{}' is not estimated", name), "AdamW or AdamW8bit");
}

/// A share of the optimizer's states stays on the host (megatron/core/optimizer/cpu_offloading).
void read_offload(Key& key) {
  if (is_on(key, "optimizer_cpu_offload") || is_on(key, "use_precision_aware_optimizer"))
    key.warn("optimizer states on the host or in fewer bits are estimated on the GPU, in fp32");
  else
    key.ignore("a step does not depend on it");
}
void refuse_rank(Key& key) {
  const Json* rank = key.other(key.path() + ".rank");
  if (rank != nullptr && *rank != 0)
    key.refuse("LoRA under Megatron-LM cannot be estimated yet", "rank 0");
  key.ignore("no adapters");
}
/// Recomputation and stages are read with the degrees.
void read_overrides(Key& key) {
  for (const char* eight : {"fp8", "fp8_format"})
    if (const Json* value = key.other(key.path() + "." + eight);
        value != nullptr && !value->is_null())
      key.refuse(fmt::format("{}: linear layers in 8 bits are not estimated here", eight), "none");
}
void refuse_if_several(Key& key) {
  if (key.integer(0) > 1) key.refuse("stages of an engine are not estimated", "1");
  key.ignore("1: none");
}

constexpr std::array kRules{
    KeyRule{"actor_rollout_ref.model.path", "", read_model},
    KeyRule{"actor_rollout_ref.model.lora_rank", "", read_rank},
    KeyRule{"actor_rollout_ref.model.target_modules", "", read_targets},
    KeyRule{"actor_rollout_ref.model.use_liger", "", read_liger},
    KeyRule{"actor_rollout_ref.model.enable_activation_offload", "", read_activation_offload},
    KeyRule{"actor_rollout_ref.model.override_config.attn_implementation", "", read_attention},
    KeyRule{"actor_rollout_ref.model.mtp", "", read_mtp},
    KeyRule{"actor_rollout_ref.model.tiled_mlp", "", warn_of_tiles},
    KeyRule{"actor_rollout_ref.actor.use_prefix_grouper", "", warn_if_larger},
    KeyRule{"actor_rollout_ref.actor.megatron.override_transformer_config", "", read_overrides},
    KeyRule{"actor_rollout_ref.model.lora", "", refuse_rank},
    KeyRule{"actor_rollout_ref.actor.optim.override_optimizer_config", "", read_offload},
    KeyRule{"actor_rollout_ref.actor.megatron.use_distributed_optimizer", "", read_with_others},
    KeyRule{"actor_rollout_ref.actor.freeze_vision_tower", "", read_frozen_tower},
    KeyRule{"actor_rollout_ref.actor.optim.optimizer", "", read_optimizer_name},
    KeyRule{"actor_rollout_ref.rollout.pipeline_model_parallel_size", "", refuse_if_several},
    KeyRule{"actor_rollout_ref.rollout.quantization", "", warn_if_larger},
};

constexpr auto kTogether =
    std::to_array<std::string_view>({"config_name",
                                     "data.train_batch_size",
                                     "data.max_prompt_length",
                                     "data.max_response_length",
                                     "algorithm.adv_estimator",
                                     "algorithm.use_kl_in_reward",
                                     "trainer.n_gpus_per_node",
                                     "trainer.nnodes",
                                     "actor_rollout_ref.hybrid_engine",
                                     "actor_rollout_ref.model.enable_gradient_checkpointing",
                                     "actor_rollout_ref.model.use_remove_padding",
                                     "actor_rollout_ref.model.use_fused_kernels",
                                     "actor_rollout_ref.actor.strategy",
                                     "actor_rollout_ref.actor.ppo_mini_batch_size",
                                     "actor_rollout_ref.actor.ppo_micro_batch_size",
                                     "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
                                     "actor_rollout_ref.actor.use_dynamic_bsz",
                                     "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
                                     "actor_rollout_ref.actor.use_kl_loss",
                                     "actor_rollout_ref.actor.entropy_coeff",
                                     "actor_rollout_ref.actor.calculate_entropy",
                                     "actor_rollout_ref.actor.calculate_sum_pi_squared",
                                     "actor_rollout_ref.actor.use_torch_compile",
                                     "actor_rollout_ref.actor.grad_clip",
                                     "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
                                     "actor_rollout_ref.actor.fsdp_config",
                                     "actor_rollout_ref.ref.strategy",
                                     "actor_rollout_ref.ref.fsdp_config",
                                     "actor_rollout_ref.ref.log_prob_micro_batch_size",
                                     "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
                                     "actor_rollout_ref.ref.log_prob_use_dynamic_bsz",
                                     "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu",
                                     "actor_rollout_ref.rollout.name",
                                     "actor_rollout_ref.rollout.n",
                                     "actor_rollout_ref.rollout.enable_prefix_caching",
                                     "actor_rollout_ref.rollout.calculate_log_probs",
                                     "actor_rollout_ref.rollout.gpu_memory_utilization",
                                     "actor_rollout_ref.rollout.tensor_model_parallel_size",
                                     "actor_rollout_ref.rollout.expert_parallel_size",
                                     "actor_rollout_ref.rollout.max_num_batched_tokens",
                                     "actor_rollout_ref.rollout.max_num_seqs",
                                     "actor_rollout_ref.rollout.max_model_len",
                                     "actor_rollout_ref.rollout.free_cache_engine",
                                     "actor_rollout_ref.rollout.enforce_eager",
                                     "actor_rollout_ref.rollout.layered_summon",
                                     "actor_rollout_ref.rollout.checkpoint_engine",
                                     "actor_rollout_ref.rollout.log_prob_micro_batch_size",
                                     "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
                                     "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz",
                                     "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
                                     "actor_rollout_ref.actor.optim.clip_grad",
                                     "critic.enable",
                                     "critic.strategy",
                                     "critic.model",
                                     "critic.ppo_micro_batch_size",
                                     "critic.ppo_micro_batch_size_per_gpu",
                                     "critic.use_dynamic_bsz",
                                     "critic.ppo_max_token_len_per_gpu",
                                     "critic.ulysses_sequence_parallel_size",
                                     "reward_model.enable",
                                     "reward_model.enable_resource_pool",
                                     "reward_model.use_reward_loop",
                                     "reward_model.model",
                                     "rollout.nnodes",
                                     "rollout.n_gpus_per_node",
                                     "async_training.staleness_threshold",
                                     "async_training.trigger_parameter_sync_step",
                                     "async_training.require_batches",
                                     "async_training.partial_rollout",
                                     "async_training.concurrent_samples_per_replica"});

const std::array kIgnored{
    IgnoredKeys{
        "a step does not depend on it",
        {"data.*", "algorithm.*", "trainer.*", "global_profiler.*", "custom_reward_function.*",
         "reward_manager*", "ray_kwargs*", "ray_init*", "transfer_queue*", "environment",
         "reward_model.*", "config_path", "defaults", "hydra*", "async_training*", "rollout.*",
         "actor_rollout_ref.nccl_timeout", "_target_*"}},
    IgnoredKeys{"a step does not depend on it",
                {"actor_rollout_ref.actor.clip_*", "actor_rollout_ref.actor.policy_loss*",
                 "actor_rollout_ref.actor.loss_*", "actor_rollout_ref.actor.kl_*",
                 "actor_rollout_ref.actor.tau_*", "actor_rollout_ref.actor.checkpoint*",
                 "actor_rollout_ref.actor.optim.*", "actor_rollout_ref.actor.load_weight",
                 "actor_rollout_ref.ref.load_weight", "actor_rollout_ref.actor.profiler*",
                 "actor_rollout_ref.actor.ppo_epochs", "actor_rollout_ref.actor.shuffle",
                 "actor_rollout_ref.actor.data_loader_seed", "actor_rollout_ref.actor.rollout_n",
                 "actor_rollout_ref.actor._target_", "actor_rollout_ref.actor.use_fused_kernels",
                 "actor_rollout_ref.actor.use_remove_padding",
                 "actor_rollout_ref.actor.use_rollout_log_probs",
                 "actor_rollout_ref.actor.router_replay*"}},
    IgnoredKeys{"compiled, the entropy is one kernel either way; else the larger is taken",
                {"actor_rollout_ref.actor.entropy_*", "actor_rollout_ref.ref.entropy_*",
                 "actor_rollout_ref.actor.sum_pi_*"}},
    IgnoredKeys{"a reference follows the actor",
                {"actor_rollout_ref.ref.ulysses_sequence_parallel_size",
                 "actor_rollout_ref.ref.use_torch_compile", "actor_rollout_ref.ref.profiler*",
                 "actor_rollout_ref.ref.rollout_n", "actor_rollout_ref.ref.router_replay*",
                 "actor_rollout_ref.ref._target_", "actor_rollout_ref.ref.model*"}},
    IgnoredKeys{"the engine holds no more for it", {"actor_rollout_ref.rollout.*"}},
    IgnoredKeys{"how checkpoints and weights come, or which kernel runs",
                {"actor_rollout_ref.actor.megatron.*", "actor_rollout_ref.ref.megatron.*",
                 "critic.megatron.*", "critic.load_weight"}},
    IgnoredKeys{"the network does not depend on it", {"actor_rollout_ref.model.*"}},
    IgnoredKeys{"a step does not depend on it",
                {"critic.optim*", "critic.cliprange*", "critic.checkpoint*", "critic.profiler*",
                 "critic.ppo_mini_batch_size", "critic.ppo_epochs", "critic.shuffle",
                 "critic.grad_clip", "critic.loss_agg_mode", "critic.data_loader_seed",
                 "critic.rollout_n", "critic._target_", "critic.forward_*"}},
};

/// Of `megatron.` of each worker.
constexpr auto kMegatron = std::to_array<std::string_view>(
    {"tensor_model_parallel_size", "pipeline_model_parallel_size",
     "virtual_pipeline_model_parallel_size", "context_parallel_size", "expert_model_parallel_size",
     "expert_tensor_parallel_size", "param_offload", "optimizer_offload", "grad_offload",
     "sequence_parallel", "use_distributed_optimizer"});
constexpr auto kWorkers = std::to_array<std::string_view>(
    {"actor_rollout_ref.actor.megatron.", "actor_rollout_ref.ref.megatron.", "critic.megatron."});

const std::vector<std::string>& megatron_keys() {
  static const std::vector<std::string> kAll = [] {
    std::vector<std::string> all;
    for (const std::string_view worker : kWorkers)
      for (const std::string_view key : kMegatron)
        all.push_back(std::string(worker) + std::string(key));
    return all;
  }();
  return kAll;
}

const std::vector<KeyRule>& all_rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(kRules.begin(), kRules.end());
    for (const std::string_view key : kTogether) all.push_back({key, "", read_with_others});
    for (const std::string& key : megatron_keys()) all.push_back({key, "", read_with_others});
    return all;
  }();
  return kAll;
}

void read(const Document& d, Recipe& recipe) {
  if (has_any(d, {"model.partial_pretrain"})) return read_sft(d, recipe);
  if (d.program.find(".sft_trainer") != std::string::npos) return read_sft_of_engines(d, recipe);
  Document whole = d;  // "${lora.rank}", of a block that the file's author has added
  resolve_references(whole.value);
  const KeyTable own{all_rules(), kIgnored};
  read_keys(whole, {&own}, recipe);
  compose_rl(Config(whole, recipe));
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"verl", "a verl configuration", is_verl, read};

}  // namespace shardplan::importing::verl
