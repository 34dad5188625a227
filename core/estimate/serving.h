// What a serving engine needs of its GPUs, how many sequences it holds at once, and how fast it
// answers them: docs/explanation/serving.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimate/calibration.h"
#include "model/model.h"
#include "plan/plan.h"
#include "rollout/engine.h"
#include "serving/engine_pass.h"

namespace shardplan {

struct Estimate;

/// Of one engine over its tensor-parallel GPUs, unless it says of all.
struct ServingEstimate {
  std::int64_t replicas = 1;  ///< engines side by side
  EngineMemory memory;        ///< of one GPU
  /// Sequences of prompt and all new tokens for which the cache has room; what prompts share is
  /// there once.
  std::int64_t room = 0;
  std::int64_t sequences = 0;       ///< that run at once: room, or what the engine or the job says
  std::string_view limited_by;      ///< "cache", "max_num_seqs" or "batch"
  double token_seconds = 0;         ///< from one token of a sequence to its next; 0: unknown
  double quiet_token_seconds = 0;   ///< the same while no prompt comes in
  double first_token_seconds = 0;   ///< of a prompt that comes to an idle engine
  double loaded_first_seconds = 0;  ///< of one that comes while all the others run
  double tokens_per_second = 0;     ///< new tokens of all replicas
  double requests_per_second = 0;   ///< of all replicas
  double queue_seconds = 0;         ///< until the last of RolloutEngine::requests is answered
  double prompt_tokens = 0;         ///< of prompts in a pass, in the mean
  EnginePassTime pass;              ///< of such a pass
};

/// `plan` has an engine. All phases of the result are what it takes when it starts, and does not
/// give back.
Estimate estimate_serving(const Model& model, const Plan& plan, const Calibration& calibration);

}  // namespace shardplan
