// What each algorithm of reinforcement learning and preference training runs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardplan {

enum class Algorithm : std::uint8_t {
  sft,
  reward,
  dpo,
  ppo,
  grpo,
  kto,
  orpo,
  cpo,
  gkd,
  gkd_on_policy,
  asft
};

/// What the model that trains ends in.
enum class RlhfHead : std::uint8_t {
  log_probabilities,  ///< of the tokens: a trainer may fuse them with the head
  logits,             ///< all of them, in the ordinary loss
  scalar,             ///< a value a token
  distilled,          ///< all logits, in a loss against those of the reference: the teacher
  anchored,           ///< the same beside an ordinary loss of the labels
};

/// What an algorithm runs. Nobody asks which algorithm it is; they ask this.
struct AlgorithmDescription {
  Algorithm algorithm = Algorithm::sft;
  std::string_view name;   ///< in jobs
  std::string_view label;  ///< in windows
  RlhfHead head = RlhfHead::log_probabilities;
  std::int64_t sequences = 1;   ///< of a sample: a pair has two
  bool has_reference = false;   ///< a frozen copy, or what stands for it, scores what is trained on
  bool has_critic = false;      ///< a second model trains on values
  bool has_reward = false;      ///< a frozen model scores whole answers
  bool needs_reward = false;    ///< and always does: no function in its place
  bool generates = false;       ///< what it trains on, which is then scored before
  bool scores_in_step = false;  ///< what it generates is scored beside the pass that trains
  bool reference_may_lack = false;  ///< with a coefficient of zero nothing asks it
  /// Passes without autograd over as many other sequences: KTO's estimate of the divergence, of the
  /// model that trains before its own pass, and of the reference beside its own (trl 1.16,
  /// kto_trainer.py, _compute_kl_logps).
  std::int64_t extra_passes = 0;
  std::string_view source = {};
};

/// All of them, in the order in which people are shown them and of Algorithm.
inline constexpr std::array kAlgorithmDescriptions{
    AlgorithmDescription{.algorithm = Algorithm::sft,
                         .name = "sft",
                         .label = "supervised fine-tuning",
                         .head = RlhfHead::logits},
    AlgorithmDescription{.algorithm = Algorithm::reward,
                         .name = "reward",
                         .label = "reward model",
                         .head = RlhfHead::scalar,
                         .sequences = 2,
                         .source = "trl 1.16, reward_trainer.py"},
    AlgorithmDescription{.algorithm = Algorithm::dpo,
                         .name = "dpo",
                         .label = "DPO",
                         .sequences = 2,
                         .has_reference = true,
                         .source = "trl 1.16, dpo_trainer.py"},
    AlgorithmDescription{.algorithm = Algorithm::ppo,
                         .name = "ppo",
                         .label = "PPO",
                         .has_reference = true,
                         .has_critic = true,
                         .has_reward = true,
                         .needs_reward = true,
                         .generates = true,
                         .reference_may_lack = true},
    AlgorithmDescription{.algorithm = Algorithm::grpo,
                         .name = "grpo",
                         .label = "GRPO",
                         .has_reference = true,
                         .has_reward = true,
                         .generates = true,
                         .reference_may_lack = true,
                         .source = "trl 1.16, grpo_trainer.py"},
    AlgorithmDescription{.algorithm = Algorithm::kto,
                         .name = "kto",
                         .label = "KTO",
                         .has_reference = true,
                         .extra_passes = 1,
                         .source = "trl 1.16, kto_trainer.py"},
    // Whole logits, and a cross-entropy beside the odds: experimental/orpo/orpo_trainer.py.
    AlgorithmDescription{.algorithm = Algorithm::orpo,
                         .name = "orpo",
                         .label = "ORPO",
                         .head = RlhfHead::logits,
                         .sequences = 2,
                         .source = "trl 1.16, experimental/orpo"},
    AlgorithmDescription{.algorithm = Algorithm::cpo,
                         .name = "cpo",
                         .label = "CPO, SimPO",
                         .head = RlhfHead::logits,
                         .sequences = 2,
                         .source = "trl 1.16, experimental/cpo"},
    // The reference is the teacher.
    AlgorithmDescription{.algorithm = Algorithm::gkd,
                         .name = "gkd",
                         .label = "GKD",
                         .head = RlhfHead::distilled,
                         .has_reference = true,
                         .source = "trl 1.16, experimental/gkd"},
    AlgorithmDescription{.algorithm = Algorithm::gkd_on_policy,
                         .name = "gkd_on_policy",
                         .label = "GKD, on-policy",
                         .head = RlhfHead::distilled,
                         .has_reference = true,
                         .generates = true,
                         .scores_in_step = true,
                         .source = "trl 1.16, experimental/gkd"},
    // The model's own loss is made too, and its tensors stay until the other is made.
    AlgorithmDescription{.algorithm = Algorithm::asft,
                         .name = "asft",
                         .label = "ASFT",
                         .head = RlhfHead::anchored,
                         .has_reference = true,
                         .source = "LLaMA-Factory 0.9.6, train/trainer_utils.py, asft_loss_func"},
};

/// Whether the loss is made of all logits of the model that trains and of its reference.
constexpr bool compares_logits(const AlgorithmDescription& a) {
  return a.head == RlhfHead::distilled || a.head == RlhfHead::anchored;
}

constexpr const AlgorithmDescription& description_of(Algorithm algorithm) {
  return kAlgorithmDescriptions[static_cast<std::size_t>(algorithm)];
}
/// Whether what is generated is scored as a phase of its own, before anything trains on it.
constexpr bool scores_apart(const AlgorithmDescription& a) {
  return a.generates && !a.scores_in_step;
}
constexpr std::string_view name_of(Algorithm algorithm) {
  return description_of(algorithm).name;
}

}  // namespace shardplan
