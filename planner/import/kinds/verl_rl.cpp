// The algorithm, the actor and its loss of a configuration of verl.trainer.main_ppo.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/kinds/verl_composer.h"
#include "import/vocabulary.h"

namespace shardplan::importing::verl {
namespace {

/// Estimators that run no critic (core_algos.py); the tokens of all are trained on alike.
constexpr std::array<std::string_view, 12> kWithoutCritic{"grpo",
                                                          "grpo_passk",
                                                          "grpo_vectorized",
                                                          "rloo",
                                                          "rloo_vectorized",
                                                          "reinforce_plus_plus",
                                                          "reinforce_plus_plus_baseline",
                                                          "remax",
                                                          "opo",
                                                          "gpg",
                                                          "optimal_token_baseline",
                                                          "tir_optimal_token_baseline"};

}  // namespace

void Composer::run() {
  take_algorithm();
  take_gpus();
  take_framework();
  take_batches();
  take_loss();
  take_reference();
  if (recipe_.algorithm == "ppo") take_critic();
  take_reward();
  take_rollout();
  recipe_.rlhf["models"]["actor"]["idle"] =
      idle_of(kActor, under_megatron() ? "megatron." : "fsdp_config.");
  if (recipe_.rlhf["models"]["actor"]["idle"] == "gpu") recipe_.rlhf["models"].erase("actor");
  if (recipe_.rlhf["models"].empty()) recipe_.rlhf.erase("models");
}

void Composer::take_algorithm() {
  const std::string estimator = c_.text("algorithm.adv_estimator", "gae");
  const bool known = std::ranges::find(kWithoutCritic, estimator) != kWithoutCritic.end();
  if (!known && estimator != "gae")
    c_.refuse("algorithm.adv_estimator", fmt::format("'{}' is not estimated", estimator),
              "gae, or one of " + fmt::format("{}", fmt::join(kWithoutCritic, ", ")));
  const bool critic = c_.flag("critic.enable", estimator == "gae");
  recipe_.take_algorithm(critic ? "ppo" : "grpo", c_.origin("algorithm.adv_estimator"));
  recipe_.rlhf["prompt_length"] = c_.integer("data.max_prompt_length", 512);
  recipe_.rlhf["new_tokens"] = c_.integer("data.max_response_length", 512);
  c_.came_from("/workload/prompt_length", "data.max_prompt_length");
  c_.came_from("/workload/new_tokens", "data.max_response_length");
}

void Composer::take_gpus() {
  recipe_.machines = c_.integer("trainer.nnodes", 1);
  recipe_.per_machine = c_.integer("trainer.n_gpus_per_node", 8);
}

void Composer::take_megatron() {
  recipe_.set("/framework", megatron_framework(c_, kActor), c_.origin(at(kActor, "strategy")));
  recipe_.set("/precision", "bf16-master", c_.origin(at(kActor, "megatron.dtype")));
  recipe_.set_default("/optimizer", "adamw");
  const Json degrees = megatron_degrees(c_, kActor);
  for (const auto& [name, value] : degrees.items())
    recipe_.set("/parallel/" + name, value, c_.origin(at(kActor, "megatron")));
  recipe_.set("/checkpointing", megatron_checkpointing(c_),
              c_.origin(at(kActor, "megatron.override_transformer_config.recompute_granularity")));
  sequence_ranks_ = degrees.value("context", std::int64_t{1});
  model_ranks_ = degrees.value("tensor", std::int64_t{1}) *
                 degrees.value("pipeline", std::int64_t{1}) * sequence_ranks_;
  recipe_.set("/gradient_clipping", c_.number(at(kActor, "optim.clip_grad"), 1.0),
              c_.origin(at(kActor, "optim.clip_grad")));
}

void Composer::take_framework() {
  if (under_megatron()) return take_megatron();
  recipe_.set("/framework", framework_of(kActor, strategy(kActor), "fsdp_config."),
              c_.origin(at(kActor, "strategy")));
  // build_optimizer: torch.optim's, as it is.
  recipe_.set_default("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}});
  recipe_.set("/trainer", "verl", c_.origin(at(kActor, "strategy")));
  assume_flash_attn(recipe_);  // workers/fsdp_workers.py
  recipe_.set("/precision", precision_of(kActor, "fsdp_config."),
              c_.origin(at(kActor, "fsdp_config.model_dtype")));
  sequence_ranks_ = c_.integer(at(kActor, "ulysses_sequence_parallel_size"), 1);
  if (sequence_ranks_ > 1)
    recipe_.set("/parallel/sequence", sequence_ranks_,
                c_.origin(at(kActor, "ulysses_sequence_parallel_size")));
  model_ranks_ = sequence_ranks_;
  const bool recomputes = c_.flag(at(kModel, "enable_gradient_checkpointing"), true);
  recipe_.set("/checkpointing", recomputes ? "full" : "none",
              c_.origin(at(kModel, "enable_gradient_checkpointing")));
  recipe_.set("/gradient_clipping", c_.number(at(kActor, "grad_clip"), 1.0),
              c_.origin(at(kActor, "grad_clip")));
}

/// Where padding stays, scores take the entropy by PyTorch's operations, whatever the loss asks.
void Composer::take_loss() {
  if (under_megatron()) return take_megatron_loss();
  if (c_.flag(at(kModel, "use_fused_kernels"), false)) {
    recipe_.set("/loss", "fused_linear", c_.origin(at(kModel, "use_fused_kernels")));
    return;
  }
  const bool packs = c_.flag(at(kModel, "use_remove_padding"), true);
  const bool compiles = c_.flag(at(kActor, "use_torch_compile"), true);
  const bool asked = c_.number(at(kActor, "entropy_coeff"), 0) != 0 ||
                     c_.flag(at(kActor, "calculate_entropy"), false) ||
                     c_.flag(at(kActor, "calculate_sum_pi_squared"), false);
  const std::string kind = packs && compiles ? "compiled" : "eager";
  if (asked) recipe_.rlhf["entropy"] = kind;
  if (!recipe_.lora.is_null() || kind == "compiled") return;
  recipe_.rlhf["scoring_entropy"] = kind;
  recipe_.note({.kind = Note::Kind::assumed,
                .field = "workload.scoring_entropy: eager",
                .reason = "old log-probabilities come with the entropy, by PyTorch's operations "
                          "where padding stays or nothing is compiled"});
}

/// Scores have the entropy; its kernel there is the same as in the loss (megatron_actor.py).
void Composer::take_megatron_loss() {
  const bool asked = c_.number(at(kActor, "entropy_coeff"), 0) != 0 ||
                     c_.flag(at(kActor, "calculate_entropy"), false);
  if (c_.flag(at(kModel, "use_fused_kernels"), false))
    recipe_.note({.kind = Note::Kind::warning,
                  .key = at(kModel, "use_fused_kernels"),
                  .reason = "under Megatron-LM all logits are estimated, which is more"});
  recipe_.rlhf[asked ? "entropy" : "scoring_entropy"] = "compiled";
}

void compose_rl(const Config& config) {
  Composer(config).run();
}

}  // namespace shardplan::importing::verl
