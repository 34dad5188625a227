// What verl 0.8 runs of a configuration of verl.trainer.main_ppo, part by part
// (verl/trainer/config, verl/trainer/ppo/utils.py, verl/workers/fsdp_workers.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/kinds/verl_config.h"

namespace shardplan::importing::verl {

inline constexpr std::string_view kActor = "actor_rollout_ref.actor.";
inline constexpr std::string_view kReference = "actor_rollout_ref.ref.";
inline constexpr std::string_view kRollout = "actor_rollout_ref.rollout.";
inline constexpr std::string_view kModel = "actor_rollout_ref.model.";

inline std::string at(std::string_view group, std::string_view key) {
  return std::string(group) + std::string(key);
}

class Composer {
 public:
  explicit Composer(const Config& config) : c_(config), recipe_(config.recipe()) {}

  void run();

 private:
  std::int64_t gpus() const { return *recipe_.machines * *recipe_.per_machine; }
  std::int64_t sequence() const {
    return recipe_.rlhf["prompt_length"].get<std::int64_t>() +
           recipe_.rlhf["new_tokens"].get<std::int64_t>();
  }

  // verl_workers.cpp
  Json framework_of(std::string_view group, const std::string& strategy,
                    std::string_view options) const;
  std::string idle_of(std::string_view group, std::string_view options) const;
  void keep_on_host(Json& role) const;
  void take_model(Json& role, std::string_view path) const;
  std::string precision_of(std::string_view group, std::string_view options) const {
    return fsdp_precision(c_, at(group, options));
  }

  /// "fsdp", "fsdp2" or "megatron".
  std::string strategy(std::string_view group) const;
  bool under_megatron() const { return strategy(kActor) == "megatron"; }

  // verl_rl.cpp
  void take_megatron();
  void take_framework();
  void take_algorithm();
  void take_gpus();
  void take_loss();
  void take_megatron_loss();

  // verl_batches.cpp
  std::int64_t batch_of(std::string_view group, std::string_view key, std::int64_t divided) const;
  std::int64_t prompts(std::int64_t mini) const;
  void take_batches();
  void take_scoring(std::int64_t budget);

  // verl_roles.cpp
  void take_reference();
  void take_megatron_reference();
  void take_critic();
  std::int64_t take_cut_critic(Json& role) const;
  std::int64_t take_critic_options(Json& role) const;
  void take_reward();
  Json judging_engine() const;

  // verl_rollout.cpp
  void take_rollout();
  void take_own_gpus(Json& rollout);
  void take_partial(Json& rollout, double behind);

  const Config& c_;
  Recipe& recipe_;
  std::int64_t sequence_ranks_ = 1, model_ranks_ = 1;
  bool dynamic_ = false;
};

}  // namespace shardplan::importing::verl
