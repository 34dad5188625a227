// The engine that generates, on the trainer's GPUs or on its own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/engine_gpus.h"
#include "import/kinds/verl_composer.h"

namespace shardplan::importing::verl {

void Composer::take_rollout() {
  const std::string engine = c_.text(at(kRollout, "name"), "");
  if (engine == "hf") return;
  if (engine.empty())
    recipe_.note({.kind = Note::Kind::assumed,
                  .field = "workload.rollout.engine: vllm",
                  .reason = "the file leaves actor_rollout_ref.rollout.name open"});
  else if (engine != "vllm" && engine != "sglang")
    c_.refuse(at(kRollout, "name"), fmt::format("'{}' is not estimated", engine),
              "vllm, sglang or hf");
  const auto key = [](std::string_view name) { return at(kRollout, name); };
  Json rollout{{"engine", engine.empty() ? "vllm" : engine}};
  const auto integer = [&](const char* field, std::string_view name, std::int64_t otherwise) {
    rollout[field] = c_.integer(key(name), otherwise);
    c_.came_from(fmt::format("/workload/rollout/{}", field), key(name));
  };
  rollout["gpu_memory_utilization"] = c_.number(key("gpu_memory_utilization"), 0.5);
  c_.came_from("/workload/rollout/gpu_memory_utilization", key("gpu_memory_utilization"));
  integer("tensor_parallel", "tensor_model_parallel_size", 2);
  if (c_.integer(key("expert_parallel_size"), 1) > 1)
    integer("expert_parallel", "expert_parallel_size", 1);
  integer("max_num_batched_tokens", "max_num_batched_tokens", 8192);
  integer("max_num_seqs", "max_num_seqs", 256);
  if (c_.said(key("max_model_len")) != nullptr) integer("max_model_length", "max_model_len", 0);
  const bool layered = c_.flag(key("layered_summon"), false);
  const bool frees = c_.flag(key("free_cache_engine"), true);
  rollout["sleep_level"] = !frees ? 0 : layered ? 1 : 2;
  if (layered) rollout["layered_summon"] = true;
  if (c_.flag(key("enforce_eager"), false)) rollout["cuda_graphs"] = false;
  if (c_.integer(key("n"), 1) > 1) integer("completions", "n", 1);
  if (!c_.flag(key("enable_prefix_caching"), true)) rollout["prefix_caching"] = false;
  if (c_.flag(key("calculate_log_probs"), false)) rollout["log_probabilities"] = true;
  rollout["weight_bucket"] =
      c_.integer(key("checkpoint_engine.update_weights_bucket_megabytes"), 2048) << 20;
  const bool apart = !c_.flag("actor_rollout_ref.hybrid_engine", true) ||
                     c_.said("rollout.n_gpus_per_node") != nullptr;
  rollout["placement"] = apart ? "separate" : "colocated";
  if (c_.said("rollout.n_gpus_per_node") != nullptr) take_own_gpus(rollout);
  recipe_.rlhf["rollout"] = std::move(rollout);
}

/// Its recipes that generate beside training: one batch behind, or as stale as the fully
/// asynchronous one lets samples be (verl/experimental/one_step_off_policy/ray_trainer.py, fit;
/// fully_async_policy/fully_async_rollouter.py).
void Composer::take_own_gpus(Json& rollout) {
  const std::int64_t machines = c_.integer("rollout.nnodes", 1);
  take_engine_gpus(rollout, recipe_, machines * c_.integer("rollout.n_gpus_per_node", 8), machines);
  c_.came_from("/workload/rollout/gpus", "rollout.n_gpus_per_node");
  const char* stale = "async_training.staleness_threshold";
  const double behind = c_.said("async_training") != nullptr ? c_.number(stale, 0.1) : 1;
  if (behind > 0) rollout["steps_off_policy"] = static_cast<std::int64_t>(std::ceil(behind));
  const bool streams = behind == 0;
  if (streams) rollout["streaming"] = true;
  const bool partial = streams || c_.flag("async_training.partial_rollout", true);
  if (partial && c_.said("async_training") != nullptr) take_partial(rollout, behind);
  rollout["sleep_level"] = 0;
}

/// So many prompts of each engine are in work, and no more than may be behind
/// (fully_async_rollouter.py, set_max_required_samples). Where some may be, they go on under new
/// weights.
void Composer::take_partial(Json& rollout, double behind) {
  const std::int64_t engines =
      rollout.at("gpus").get<std::int64_t>() / rollout.value("tensor_parallel", std::int64_t{1});
  const auto most =
      static_cast<std::int64_t>(static_cast<double>(recipe_.generated.value_or(0)) * (1 + behind));
  const std::int64_t prompts =
      engines * c_.integer("async_training.concurrent_samples_per_replica", 16);
  rollout["answers_in_work"] =
      std::min(most, prompts * rollout.value("completions", std::int64_t{1}));
  c_.came_from("/workload/rollout/answers_in_work",
               "async_training.concurrent_samples_per_replica");
}

}  // namespace shardplan::importing::verl
