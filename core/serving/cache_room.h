// How many sequences a paged cache holds to their last token, and what they compute of their
// prompts: docs/explanation/serving.md.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace shardplan {

struct RolloutEngine;

/// Blocks of an engine's cache that sequences of a workload take: what all prompts share is there
/// once, and so are the full blocks of a prompt to which there are several completions
/// (RolloutEngine::completions).
class CacheRoom {
 public:
  CacheRoom(const RolloutEngine& engine, const Workload& workload);

  /// Completions of a prompt follow each other: the last prompt of `sequences` may have fewer.
  std::int64_t blocks_of(std::int64_t sequences) const;
  /// Prompts and all new tokens of so many sequences have room in `blocks`.
  std::int64_t sequences_in(std::int64_t blocks) const;
  /// Tokens of their prompts that an engine computes for `sequences` that it takes in together.
  std::int64_t prompt_tokens(std::int64_t sequences) const;

 private:
  std::int64_t completions_;  ///< of a prompt
  std::int64_t prompt_;       ///< tokens
  std::int64_t found_;        ///< of those, what a later completion finds in the cache
  std::int64_t computing_;    ///< completions of a prompt that compute all of it
  std::int64_t shared_;       ///< blocks of the prefix that are full
  std::int64_t of_prompt_;    ///< of each prompt beside those
  std::int64_t own_;          ///< of each completion beside both
};

}  // namespace shardplan
