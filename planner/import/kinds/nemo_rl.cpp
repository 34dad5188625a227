// NeMo RL's recipes and the commands that run them (7ea279abf: examples/configs,
// examples/run_*.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "import/kinds/kind.h"
#include "import/kinds/nemo_rl_layers.h"
#include "import/kinds/nemo_rl_workers.h"
#include "import/vocabulary.h"

namespace shardplan::importing::nemo_rl {
namespace {

bool builds_on_a_file(const Document& d) {
  const Json* defaults = value_below(d.value, "defaults");
  if (defaults != nullptr && defaults->is_array() && !defaults->empty())
    defaults = &defaults->back();
  if (defaults == nullptr || !defaults->is_string()) return false;
  const auto& name = defaults->get_ref<const std::string&>();
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

bool is_nemo_rl(const Document& d) {
  if (d.is_command())
    return !usual_file(d.program).empty() &&
           has_any(d, {"config", "policy", "cluster", "grpo", "sft", "dpo", "rm", "logger"});
  if (has_any(d, {"policy.dtensor_cfg", "policy.megatron_cfg", "policy.train_global_batch_size"}))
    return true;
  return builds_on_a_file(d) &&
         has_any(d, {"policy", "grpo", "dpo", "sft", "rm", "ppo", "distillation", "cluster",
                     "data_plane", "loss_fn", "data", "env", "async_rl", "value", "checkpointing"});
}

/// Its value is read with those of other keys.
void read_with_others(Key&) {}

void refuse_if_positive(Key& key) {
  if (key.integer(0) > 0) key.refuse("heads for several tokens are not estimated", "0");
  key.ignore("0: none");
}
void refuse_if_enabled(Key& key) {
  const std::string path = key.path();
  if (key.other_is_true(path + ".enabled"))
    key.refuse("a second network that trains is not estimated", "enabled: false");
  key.ignore("off");
}
void read_megatron_adapters(Key& key) {
  if (key.other_is_true(key.path() + ".enabled"))
    key.refuse("LoRA under Megatron-LM cannot be estimated yet", "enabled: false");
  key.ignore("no adapters");
}
void read_fp8(Key& key) {
  if (key.other_is_true(key.path() + ".enabled"))
    key.refuse("linear layers in 8 bits are not estimated here", "enabled: false");
  key.ignore("off");
}
void warn_if_said(Key& key) {
  const bool empty = (key.value().is_structured() && key.value().empty()) || key.value() == false;
  if (empty) return key.ignore("nothing");
  key.warn("is not in the estimate");
}
void warn_if_not_none(Key& key) {
  if (key.text() == "none") return key.ignore("none");
  key.warn("the memory of a step's CUDA graphs is not counted");
}
void warn_of_chunks(Key& key) {
  key.warn("log-probabilities are estimated of all tokens at once, which takes more");
}
void read_engines_precision(Key& key) {
  const std::string name = key.text();
  if (!dtype_word(name).empty()) return key.ignore("16 bits");
  key.warn("the engine's weights are estimated in 16 bits, which takes more");
}
void warn_of_cache_type(Key& key) {
  if (key.text() == "auto") return key.ignore("as the weights");
  key.warn("the engine's keys and values are estimated in 16 bits, of which fewer have room");
}
/// automodel's peft: every linear layer unless told which (nemo_rl/models/automodel/setup.py).
void read_adapters(Key& key) {
  const std::string block = key.path() + ".";
  if (!key.other_is_true(block + "enabled")) return key.ignore("no adapters");
  make_lora(key.recipe());
  Json& lora = key.recipe().lora;
  const Json* rank = key.other(block + "dim");
  lora["rank"] = rank != nullptr ? *rank : Json(8);
  const Json* all = key.other(block + "match_all_linear");
  const Json* targets = key.other(block + "target_modules");
  const bool named = targets != nullptr && targets->is_array() && !targets->empty();
  lora["targets"] = (all != nullptr && *all == true) || !named ? Json{"all-linear"} : *targets;
  key.took("workload.lora: " + lora.dump());
}
void read_overridden_config(Key& key) {
  if (key.value().is_object() && key.value().empty()) return key.ignore("nothing");
  key.warn("the model is estimated as its own config.json has it");
}
void warn_of_graders(Key& key) {
  if (key.other_is_true(key.path() + ".enabled"))
    return key.warn("the reward model is on GPUs of its own, which are not estimated");
  key.ignore("off");
}
void warn_of_teachers(Key& key) {
  key.warn("teachers are on GPUs of their own, which are not estimated");
}
void refuse_quantized(Key& key) {
  key.refuse("training with quantized weights (ModelOpt) is not estimated", "no quant_cfg");
}
void read_drafts(Key& key) {
  key.warn("the engine's speculative decoding is not estimated");
}

constexpr std::array kRules{
    KeyRule{"policy.model_name", "", read_model},
    KeyRule{"policy.draft", "", refuse_if_enabled},
    KeyRule{"policy.quant_cfg", "", refuse_quantized},
    KeyRule{"policy.logprob_chunk_size", "", warn_of_chunks},
    KeyRule{"policy.hf_config_overrides", "", read_overridden_config},
    KeyRule{"policy.dtensor_cfg.lora_cfg", "", read_adapters},
    KeyRule{"policy.dtensor_cfg.custom_parallel_plan", "", warn_if_said},
    KeyRule{"policy.dtensor_cfg.automodel_kwargs.use_liger_kernel", "", read_liger},
    KeyRule{"policy.dtensor_cfg.automodel_kwargs.attn_implementation", "", read_attention},
    KeyRule{"policy.dtensor_cfg.automodel_kwargs.freeze_config", "", warn_if_larger},
    KeyRule{"policy.megatron_cfg.peft", "", read_megatron_adapters},
    KeyRule{"policy.megatron_cfg.fp8_cfg", "", read_fp8},
    KeyRule{"policy.megatron_cfg.mtp_num_layers", "", refuse_if_positive},
    KeyRule{"policy.megatron_cfg.use_fused_linear_logprobs", "", warn_if_larger},
    KeyRule{"policy.megatron_cfg.fine_grained_activation_offloading", "", warn_if_larger},
    KeyRule{"policy.megatron_cfg.cuda_graph_impl", "", warn_if_not_none},
    KeyRule{"policy.megatron_cfg.model_overrides", "", warn_if_said},
    KeyRule{"policy.megatron_cfg.optimizer.optimizer_cpu_offload", "", warn_if_larger},
    KeyRule{"policy.megatron_cfg.distributed_data_parallel_config.use_custom_fsdp", "",
            refuse_if_true},
    KeyRule{"policy.generation.vllm_cfg.precision", "", read_engines_precision},
    KeyRule{"policy.generation.vllm_cfg.kv_cache_dtype", "", warn_of_cache_type},
    KeyRule{"policy.generation.vllm_kwargs.speculative_config", "", read_drafts},
    KeyRule{"policy.generation.quant_cfg", "", refuse_quantized},
    KeyRule{"env.reward_model", "", warn_of_graders},
    KeyRule{"on_policy_distillation", "", warn_of_teachers},
};

constexpr auto kTogether = std::to_array<std::string_view>(
    {"cluster.gpus_per_node",
     "cluster.num_nodes",
     "grpo.num_prompts_per_step",
     "grpo.num_generations_per_prompt",
     "loss_fn.reference_policy_kl_penalty",
     "dpo.reference_policy_kl_penalty",
     "policy.train_global_batch_size",
     "policy.train_micro_batch_size",
     "policy.logprob_batch_size",
     "policy.max_total_sequence_length",
     "policy.precision",
     "policy.max_grad_norm",
     "policy.offload_optimizer_for_logprob",
     "policy.refit_buffer_size_gb",
     "policy.optimizer.name",
     "policy.optimizer.kwargs.foreach",
     "policy.optimizer.kwargs.fused",
     "policy.sequence_packing.enabled",
     "policy.sequence_packing.train_mb_tokens",
     "policy.sequence_packing.logprob_mb_tokens",
     "policy.dynamic_batching.enabled",
     "policy.dynamic_batching.train_mb_tokens",
     "policy.dynamic_batching.logprob_mb_tokens",
     "policy.dtensor_cfg._v2",
     "policy.dtensor_cfg.enabled",
     "policy.dtensor_cfg.cpu_offload",
     "policy.dtensor_cfg.sequence_parallel",
     "policy.dtensor_cfg.activation_checkpointing",
     "policy.dtensor_cfg.tensor_parallel_size",
     "policy.dtensor_cfg.context_parallel_size",
     "policy.dtensor_cfg.expert_parallel_size",
     "policy.dtensor_cfg.dp_replicate_size",
     "policy.dtensor_cfg.automodel_kwargs.backend.dispatcher",
     "policy.dtensor_cfg.moe_parallelizer.reshard_after_forward",
     "policy.megatron_cfg.enabled",
     "policy.megatron_cfg.activation_checkpointing",
     "policy.megatron_cfg.recompute_granularity",
     "policy.megatron_cfg.recompute_modules",
     "policy.megatron_cfg.tensor_model_parallel_size",
     "policy.megatron_cfg.pipeline_model_parallel_size",
     "policy.megatron_cfg.context_parallel_size",
     "policy.megatron_cfg.expert_model_parallel_size",
     "policy.megatron_cfg.expert_tensor_parallel_size",
     "policy.megatron_cfg.num_layers_in_first_pipeline_stage",
     "policy.megatron_cfg.num_layers_in_last_pipeline_stage",
     "policy.megatron_cfg.sequence_parallel",
     "policy.megatron_cfg.optimizer.optimizer",
     "policy.megatron_cfg.optimizer.use_distributed_optimizer",
     "policy.megatron_cfg.distributed_data_parallel_config.grad_reduce_in_fp32",
     "policy.megatron_cfg.distributed_data_parallel_config.overlap_grad_reduce",
     "policy.megatron_cfg.distributed_data_parallel_config.overlap_param_gather",
     "policy.generation.backend",
     "policy.generation.max_new_tokens",
     "grpo.async_grpo.enabled",
     "grpo.async_grpo.max_trajectory_age_steps",
     "grpo.async_grpo.in_flight_weight_updates",
     "policy.generation.colocated.enabled",
     "policy.generation.colocated.resources.gpus_per_node",
     "policy.generation.colocated.resources.num_nodes",
     "policy.generation.vllm_cfg.gpu_memory_utilization",
     "policy.generation.vllm_cfg.tensor_parallel_size",
     "policy.generation.vllm_cfg.pipeline_parallel_size",
     "policy.generation.vllm_cfg.expert_parallel_size",
     "policy.generation.vllm_cfg.max_model_len",
     "policy.generation.vllm_cfg.enforce_eager",
     "policy.generation.vllm_cfg.enable_prefix_caching",
     "policy.generation.vllm_kwargs.max_num_batched_tokens",
     "policy.generation.vllm_kwargs.max_num_seqs",
     "policy.generation.vllm_kwargs.block_size",
     "policy.generation.sglang_cfg.mem_fraction_static",
     "policy.generation.sglang_cfg.tp_size",
     "policy.generation.sglang_cfg.pp_size",
     "policy.generation.sglang_cfg.max_running_requests",
     "policy.generation.sglang_cfg.context_length",
     "policy.generation.sglang_cfg.disable_cuda_graph"});

const std::array kIgnored{
    IgnoredKeys{"a step does not depend on it",
                {"data*", "env.*", "logger.*", "checkpointing.*", "grpo.*", "dpo.*", "rm.*",
                 "sft.*", "loss_fn.*", "reward_penalties*", "async_rl*", "cluster.*", "teacher*",
                 "value*", "advantage*", "nemo_gym*"}},
    IgnoredKeys{"a step does not depend on it",
                {"policy.tokenizer*", "policy.scheduler*", "policy.generation_batch_size",
                 "policy.make_sequence_length_divisible_by", "policy.reward_model_cfg*",
                 "policy.optimizer.kwargs*", "policy.is_vlm", "policy.quant_*",
                 "policy.disable_modelopt_layer_spec", "policy.dequantize_base_checkpoint",
                 "policy.router_replay*", "policy.sequence_packing.*",
                 "policy.activation_checkpointing_enabled", "policy.dynamic_batching.*"}},
    IgnoredKeys{"how weights come, or which kernel runs",
                {"policy.dtensor_cfg.defer_fsdp_grad_sync",
                 "policy.dtensor_cfg.env_vars*",
                 "policy.dtensor_cfg.automodel_kwargs.*",
                 "policy.dtensor_cfg.moe_parallelizer.*",
                 "policy.dtensor_cfg.clear_cache_every_n_steps",
                 "policy.megatron_cfg.env_vars*",
                 "policy.megatron_cfg.checkpoint*",
                 "policy.megatron_cfg.scheduler*",
                 "policy.megatron_cfg.optimizer.*",
                 "policy.megatron_cfg.moe_*",
                 "policy.megatron_cfg.mtp_*",
                 "policy.megatron_cfg.cuda_graph_*",
                 "policy.megatron_cfg.distributed_data_parallel_config.*",
                 "policy.megatron_cfg.freeze_*",
                 "policy.megatron_cfg.fused_linear_*",
                 "policy.megatron_cfg.offload_modules",
                 "policy.megatron_cfg.apply_rope_fusion",
                 "policy.megatron_cfg.attention_backend",
                 "policy.megatron_cfg.bias_activation_fusion",
                 "policy.megatron_cfg.converter_type",
                 "policy.megatron_cfg.calculate_per_token_loss",
                 "policy.megatron_cfg.cp_normalize",
                 "policy.megatron_cfg.clear_memory_caches_before_refit",
                 "policy.megatron_cfg.defer_fp32_logits",
                 "policy.megatron_cfg.do_not_average_loss",
                 "policy.megatron_cfg.empty_unused_memory_level",
                 "policy.megatron_cfg.force_reconvert_from_hf",
                 "policy.megatron_cfg.gradient_accumulation_fusion",
                 "policy.megatron_cfg.pipeline_dtype",
                 "policy.megatron_cfg.radio_*",
                 "policy.megatron_cfg.scale_loss_by_dp_cp_size",
                 "policy.megatron_cfg.track_moe_metrics",
                 "policy.megatron_cfg.train_iters",
                 "policy.megatron_cfg.use_fused_weighted_squared_relu",
                 "policy.megatron_cfg.use_gloo_process_groups"}},
    IgnoredKeys{"the engine holds no more for it",
                {"policy.generation.vllm_cfg.*", "policy.generation.vllm_kwargs*",
                 "policy.generation.sglang_cfg.*", "policy.generation.*"}},
};

const std::vector<KeyRule>& all_rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(kRules.begin(), kRules.end());
    for (const std::string_view key : kTogether) all.push_back({key, "", read_with_others});
    return all;
  }();
  return kAll;
}

/// Says of every line where it stands. What a file only inherits and nothing depends on is left
/// out.
void place_notes(const Layers& all, Recipe& recipe, std::size_t first) {
  const auto own = recipe.notes.begin() + static_cast<std::ptrdiff_t>(first);
  recipe.notes.erase(std::remove_if(own, recipe.notes.end(),
                                    [&](const Note& note) {
                                      const bool idle = note.kind == Note::Kind::ignored ||
                                                        note.kind == Note::Kind::unknown ||
                                                        note.kind == Note::Kind::took;
                                      return idle && all.is_inherited(note.key);
                                    }),
                     recipe.notes.end());
  for (std::size_t i = first; i < recipe.notes.size(); ++i) {
    Note& note = recipe.notes[i];
    if (note.key.empty() || value_below(all.whole.value, note.key) == nullptr) continue;
    const Document& holder = all.holder(note.key);
    note.file = holder.file;
    note.line = holder.positions.find(note.key).line;
  }
  for (auto& [pointer, origin] : recipe.origins) {
    if (origin.file != all.whole.file || value_below(all.whole.value, origin.key) == nullptr)
      continue;
    const Document& holder = all.holder(origin.key);
    origin.line = holder.positions.find(origin.key).line;
  }
}

void compose(const Layers& all, Recipe& recipe) {
  const HydraConfig config(all.whole, recipe);
  for (const char* other : {"distillation", "ppo"})
    if (config.said(other) != nullptr)
      config.refuse(other, "NeMo RL's distillation and PPO are not read yet",
                    "a recipe of grpo, dpo, rm or sft");
  const KeyTable own{all_rules(), kIgnored};
  read_keys(all.whole, {&own}, recipe);
  recipe.machines = config.integer("cluster.num_nodes", 1);
  recipe.per_machine = config.integer("cluster.gpus_per_node", 1);
  take_workers(config);
  take_work(config);
}

void read(const Document& d, Recipe& recipe) {
  const Layers all = layers_of(d, recipe);
  const std::size_t first = recipe.notes.size();
  try {
    compose(all, recipe);
  } catch (const InputError& error) {
    Diagnostic where = error.diagnostic();
    if (value_below(all.whole.value, where.key) == nullptr) throw;
    const Document& holder = all.holder(where.key);
    where.file = holder.file;
    where.position = holder.positions.find(where.key);
    throw InputError(std::move(where));
  }
  place_notes(all, recipe, first);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"nemo_rl", "a NeMo RL recipe", is_nemo_rl, read, true};

}  // namespace shardplan::importing::nemo_rl
