#include "import/kinds/openrlhf_flags.h"

#include <algorithm>
#include <array>

#include "base/diagnostic.h"

namespace shardplan::importing::openrlhf {
namespace {

constexpr auto kFlags = std::to_array<Flag>({
    {"pretrain", "actor.model_name_or_path", "model.model_name_or_path"},
    {"reward_pretrain", "reward.model_name_or_path"},
    {"critic_pretrain", "critic.model_name_or_path"},
    {"ref_pretrain", "ref.model_name_or_path"},
    {"actor_num_nodes", "actor.num_nodes"},
    {"actor_num_gpus_per_node", "actor.num_gpus_per_node"},
    {"ref_num_nodes", "ref.num_nodes"},
    {"ref_num_gpus_per_node", "ref.num_gpus_per_node"},
    {"critic_num_nodes", "critic.num_nodes"},
    {"critic_num_gpus_per_node", "critic.num_gpus_per_node"},
    {"reward_num_nodes", "reward.num_nodes"},
    {"reward_num_gpus_per_node", "reward.num_gpus_per_node"},
    {"colocate_all_models", "train.colocate_all"},
    {"colocate_actor_ref", "train.colocate_actor_ref"},
    {"colocate_critic_reward", "train.colocate_critic_reward"},
    {"async_train", "train.async_enable"},
    {"async_queue_size", "train.async_queue_size"},
    {"vllm_num_engines", "vllm.num_engines"},
    {"vllm_tensor_parallel_size", "vllm.tensor_parallel_size"},
    {"vllm_gpu_memory_utilization", "vllm.gpu_memory_utilization"},
    {"vllm_enable_sleep", "vllm.enable_sleep"},
    {"vllm_sync_backend", "vllm.sync_backend"},
    {"enforce_eager", "vllm.enforce_eager"},
    {"enable_prefix_caching", "vllm.enable_prefix_caching"},
    {"zero_stage", "ds.zero_stage"},
    {"adam_offload", "ds.adam_offload"},
    {"zpg", "ds.zpg"},
    {"overlap_comm", "ds.overlap_comm"},
    {"grad_accum_dtype", "ds.grad_accum_dtype"},
    {"param_dtype", "ds.param_dtype"},
    {"bf16"},
    {"deepspeed_enable_sleep", "ds.enable_sleep"},
    {"ds_tensor_parallel_size", "ds.tensor_parallel_size"},
    {"ring_attn_size", "ds.ring_attn_size"},
    {"attn_implementation", "ds.attn_implementation"},
    {"flash_attn"},
    {"packing_samples", "ds.packing_samples"},
    {"use_liger_kernel", "ds.use_liger_kernel"},
    {"deepcompile", "ds.deepcompile"},
    {"gradient_checkpointing", "actor.gradient_checkpointing_enable",
     "model.gradient_checkpointing_enable"},
    {"load_in_4bit", "ds.load_in_4bit"},
    {"lora_rank", "ds.lora.rank"},
    {"lora_dropout", "ds.lora.dropout"},
    {"target_modules", "ds.lora.target_modules"},
    {"micro_train_batch_size", "train.micro_batch_size"},
    {"train_batch_size", "train.batch_size"},
    {"micro_rollout_batch_size", "rollout.micro_batch_size"},
    {"rollout_batch_size", "rollout.batch_size"},
    {"n_samples_per_prompt", "rollout.n_samples_per_prompt"},
    {"use_dynamic_batch", "train.dynamic_batch_enable"},
    {"train_max_tokens_per_gpu", "train.max_tokens_per_gpu"},
    {"rollout_max_tokens_per_gpu", "rollout.max_tokens_per_gpu"},
    {"max_len", "data.max_len"},
    {"max_new_tokens", "rollout.max_new_tokens"},
    {"prompt_max_len"},
    {"generate_max_len"},
    {"advantage_estimator", "algo.advantage.estimator"},
    {"init_kl_coef", "algo.kl.init_coef"},
    {"entropy_loss_coef", "actor.entropy_coef"},
    {"remote_rm_url", "reward.remote_url"},
    {"agent_func_path", "train.agent_func_path"},
    {"max_norm", "actor.max_norm"},
    {"optim", "actor.optim"},
    {"critic_optim", "critic.optim"},
    {"enable_ema", "train.enable_ema"},
    {"ref_offload", "ref.offload"},
    {"reward_offload", "reward.offload"},
    {"ref_reward_offload"},
    {"freeze_visual_encoder", "actor.freeze_visual_encoder"},
    {"max_images_per_prompt", "data.max_images_per_prompt"},
});

}  // namespace

std::span<const Flag> flags() {
  return kFlags;
}

std::string Flags::spelled(std::string_view name) const {
  const auto flag = std::ranges::find(kFlags, name, &Flag::name);
  if (flag == kFlags.end()) return {};
  for (const std::string_view each : {flag->grouped, flag->of_model, flag->name}) {
    const auto found =
        each.empty() ? document_.value.end() : document_.value.find(std::string(each));
    if (found != document_.value.end() && !found->is_null() &&
        !document_.unset.contains(std::string(each)))
      return std::string(each);
  }
  return {};
}

const Json* Flags::value(std::string_view name) const {
  const std::string key = spelled(name);
  return key.empty() ? nullptr : &document_.value.at(key);
}

std::int64_t Flags::integer(std::string_view name, std::int64_t otherwise) const {
  const Json* said = value(name);
  return said == nullptr ? otherwise : Key(document_, spelled(name), *said, "", recipe_).integer(0);
}

double Flags::number(std::string_view name, double otherwise) const {
  const Json* said = value(name);
  return said == nullptr ? otherwise : Key(document_, spelled(name), *said, "", recipe_).number();
}

bool Flags::on(std::string_view name) const {
  const Json* said = value(name);
  return said != nullptr && Key(document_, spelled(name), *said, "", recipe_).flag();
}

std::string Flags::text(std::string_view name, std::string_view otherwise) const {
  const Json* said = value(name);
  return said == nullptr ? std::string(otherwise)
                         : Key(document_, spelled(name), *said, "", recipe_).text();
}

std::vector<std::string> Flags::list(std::string_view name) const {
  const Json* said = value(name);
  if (said == nullptr) return {};
  return Key(document_, spelled(name), *said, "", recipe_).list();
}

Origin Flags::origin(std::string_view name) const {
  const std::string key = spelled(name);
  return {document_.file, key, document_.positions.find(key).line};
}

void Flags::came_from(const std::string& pointer, std::string_view name) const {
  if (says(name)) recipe_.origins[pointer] = origin(name);
}

void Flags::warn(std::string_view name, std::string reason) const {
  const Origin where = origin(name);
  recipe_.note({.kind = Note::Kind::warning,
                .file = where.file,
                .line = where.line,
                .key = where.key,
                .reason = std::move(reason)});
}

void Flags::refuse(std::string_view name, std::string message, std::string expected) const {
  const Origin where = origin(name);
  throw InputError({.file = document_.file,
                    .key = where.key.empty() ? std::string(name) : where.key,
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .position = {where.line, where.line > 0 ? 1 : 0}});
}

bool Flags::older() const {
  return std::ranges::none_of(document_.value.items(), [](const auto& entry) {
    return entry.key().find('.') != std::string::npos;
  });
}

std::string Flags::program() const {
  std::string name = document_.program;
  if (name.ends_with(".py")) name.resize(name.size() - 3);
  return name.substr(name.rfind('.') + 1);
}

}  // namespace shardplan::importing::openrlhf
