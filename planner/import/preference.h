// What trainers' files call algorithms of preference training and reinforcement learning, and the
// keys about their references and what is generated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/keys.h"

namespace shardplan::importing {

/// The job's algorithm for a word: "simpo" is cpo's trainer, "rm" is reward. "" for others.
std::string algorithm_word(std::string_view word);

/// A key whose value is such a word; refuses the others by name.
void read_algorithm(Key& key);
void read_precomputed(Key& key);    ///< precompute_ref_log_probs
void read_new_tokens(Key& key);     ///< max_completion_length
void read_prompt_tokens(Key& key);  ///< max_prompt_length
void read_completions(Key& key);    ///< num_generations
/// Distillation trains on the student's own answers in half of its steps unless `lmbda` says
/// otherwise (TRL 1.16, experimental/gkd/gkd_config.py; ms-swift's arguments).
void settle_distillation(const Document& document, Recipe& recipe);
/// Whether its algorithm generates what it trains on.
bool generates(const Recipe& recipe);

/// GRPO's coefficient of the divergence from the reference; of the others a scale of the loss.
void read_beta(Key& key);
/// What a trainer's program asks of vLLM where its file does not.
struct VllmDefaults {
  double utilization = 0.9;
  std::int64_t batched_tokens = 8192;
};
/// use_vllm, with the keys of the same file that begin with "vllm_", and sleep_level.
void read_vllm_engine(Key& key, const VllmDefaults& usual);

/// GRPO asks a reference where its coefficient, said or else `usual`, is not zero.
void settle_reference(Recipe& recipe, double usual);

}  // namespace shardplan::importing
