// The models beside the actor: reference, critic, reward model.
#include <fmt/format.h>

#include "import/kinds/verl_composer.h"

namespace shardplan::importing::verl {

/// A module of its own, whose shards FSDP keeps on the host (CPUOffload, whatever param_offload
/// says), in the type that its own options say.
void Composer::take_reference() {
  const bool asked =
      c_.flag(at(kActor, "use_kl_loss"), false) || c_.flag("algorithm.use_kl_in_reward", false);
  if (!asked) {
    recipe_.rlhf["reference"] = "none";
    recipe_.note({.kind = Note::Kind::assumed,
                  .field = "workload.reference: none",
                  .reason = "neither use_kl_loss nor use_kl_in_reward asks one"});
    return;
  }
  if (!recipe_.lora.is_null()) {
    recipe_.rlhf["reference"] = "base";
    return;
  }
  if (under_megatron()) return take_megatron_reference();
  Json& model = recipe_.rlhf["models"]["reference"];
  model["framework"] = framework_of(kReference, strategy(kReference), "fsdp_config.");
  keep_on_host(model);
  const std::string precision = precision_of(kReference, "fsdp_config.");
  if (*recipe_.find("/precision") != precision) model["precision"] = precision;
}

/// Its parameters alone, in 16 bits, cut as it says itself.
void Composer::take_megatron_reference() {
  Json& model = recipe_.rlhf["models"]["reference"];
  model = Json::object();
  Json degrees = megatron_degrees(c_, kReference);
  degrees["virtual_pipeline"] = 1;
  model["parallel"] = std::move(degrees);
  if (c_.flag(at(kReference, "megatron.param_offload"),
              c_.flag(at(kActor, "megatron.param_offload"), false)))
    model["idle"] = "host";
}

void Composer::take_critic() {
  Json& role = recipe_.rlhf["models"]["critic"];
  role = Json::object();
  take_model(role, "critic.model.path");
  const std::string own = strategy("critic.");
  if ((own == "megatron") != under_megatron())
    c_.refuse("critic.strategy", "a critic under another framework than the actor's", "the same");
  role["framework"] = framework_of("critic.", own, "model.fsdp_config.");
  if (role["framework"] == *recipe_.find("/framework")) role.erase("framework");
  const std::string idle =
      idle_of("critic.", under_megatron() ? "megatron." : "model.fsdp_config.");
  if (idle != "gpu") role["idle"] = idle;
  const std::int64_t divided = under_megatron() ? take_cut_critic(role) : take_critic_options(role);
  if (c_.flag("critic.use_dynamic_bsz", dynamic_)) {
    role["token_budget"] = c_.integer("critic.ppo_max_token_len_per_gpu", 32768);
  } else {
    role["token_budget"] = 0;
    std::int64_t micro = batch_of("critic.", "ppo_micro_batch_size", divided);
    if (micro == 0) micro = recipe_.asked_micro_batch;
    if (micro == 0)
      c_.refuse("critic.ppo_micro_batch_size_per_gpu",
                "neither said nor use_dynamic_bsz: verl asks for one of them",
                "critic.ppo_micro_batch_size_per_gpu, or --micro-batch");
    role["workload"]["micro_batch"] = micro;
  }
  if (!recipe_.rlhf.contains("token_budget") && role["token_budget"] == 0)
    role.erase("token_budget");
}

/// Both return the GPUs that share a sample.
std::int64_t Composer::take_cut_critic(Json& role) const {
  role["parallel"] = megatron_degrees(c_, "critic.");
  std::int64_t ranks = 1;
  for (const char* name : {"tensor", "pipeline", "context"})
    ranks *= role["parallel"].value(name, std::int64_t{1});
  return ranks;
}

std::int64_t Composer::take_critic_options(Json& role) const {
  const std::string precision = precision_of("critic.", "model.fsdp_config.");
  if (*recipe_.find("/precision") != precision) role["precision"] = precision;
  const std::int64_t divided = c_.integer("critic.ulysses_sequence_parallel_size", 1);
  if (divided != sequence_ranks_) role["parallel"] = Json{{"sequence", divided}};
  const bool recomputes = c_.flag("critic.model.enable_gradient_checkpointing", true);
  if ((*recipe_.find("/checkpointing") == "full") != recomputes)
    role["checkpointing"] = recomputes ? "full" : "none";
  return divided;
}

/// A model that judges answers: a worker like the reference (use_reward_loop false), or an engine
/// of its own.
void Composer::take_reward() {
  if (!c_.flag("reward_model.enable", false)) {
    if (recipe_.algorithm == "ppo") recipe_.rlhf["rewards"] = "function";
    return;
  }
  if (c_.flag("reward_model.enable_resource_pool", false)) {
    if (recipe_.algorithm == "ppo") recipe_.rlhf["rewards"] = "function";
    recipe_.note({.kind = Note::Kind::warning,
                  .key = "reward_model.enable_resource_pool",
                  .reason = "the reward model is on GPUs of its own, which are not estimated"});
    return;
  }
  Json& role = recipe_.rlhf["models"]["reward"];
  role = Json::object();
  take_model(role, "reward_model.model.path");
  if (c_.flag("reward_model.use_reward_loop", true)) {
    role["engine"] = judging_engine();
    return;
  }
  role["framework"] =
      framework_of("reward_model.", c_.text("reward_model.strategy", "fsdp"), "model.fsdp_config.");
  keep_on_host(role);
  role["precision"] = "bf16-pure";
  if (const std::int64_t micro = batch_of("reward_model.", "micro_batch_size", 1); micro > 0)
    role["workload"]["micro_batch"] = micro;
}

/// config/reward_model/dp_reward_loop.yaml; it sleeps with its weights on the host (rollout/
/// vllm_rollout/vllm_async_server.py, sleep).
Json Composer::judging_engine() const {
  const auto key = [](std::string_view name) { return at("reward_model.rollout.", name); };
  const std::string name = c_.text(key("name"), "vllm");
  if (name != "vllm" && name != "sglang")
    c_.refuse(key("name"), fmt::format("'{}' is not estimated", name), "vllm or sglang");
  const std::int64_t length =
      c_.integer(key("prompt_length"), 2048) + c_.integer(key("response_length"), 2048);
  return {{"engine", name},
          {"gpu_memory_utilization", c_.number(key("gpu_memory_utilization"), 0.5)},
          {"tensor_parallel", c_.integer(key("tensor_model_parallel_size"), 2)},
          {"cuda_graphs", !c_.flag(key("enforce_eager"), true)},
          {"max_num_batched_tokens", c_.integer(key("max_num_batched_tokens"), 8192)},
          {"max_num_seqs", c_.integer(key("max_num_seqs"), 1024)},
          {"max_model_length", c_.integer(key("max_model_len"), length)},
          {"sleep_level", c_.flag(key("free_cache_engine"), true) ? 1 : 0}};
}

}  // namespace shardplan::importing::verl
