// What a trainer has where a job that names it says nothing: its own defaults, in a job's words.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shardplan {

/// An engine as a trainer starts it.
struct EngineDefaults {
  std::string_view engine;  ///< in jobs
  double utilization = 0;
  int sleep_level = 0;  ///< where it shares the trainer's GPUs
  std::int64_t batched_tokens = 0, sequences = 0, bucket = 0, completions = 0;  ///< 0: left open
  bool finds_prefixes = true;
  bool starts_server = true;  ///< on GPUs of its own, too; else another command says its share
};

/// What it has under one framework. "": the job's usual one.
struct FrameworkDefaults {
  std::string_view framework;  ///< in jobs
  std::string_view reduced;    ///< the type that gradients are reduced in
  std::string_view precision;
  std::string_view lora_precision;  ///< in the place of `precision`
  std::string_view optimizer;       ///< the kind of AdamW
  bool reference_shards_on_host = false;
  /// Its workers are the framework's own, whose jobs name no trainer.
  bool has_own_workers = false;
  bool overlaps = true;         ///< reductions and gathers
  bool scores_entropy = false;  ///< beside log-probabilities
  bool asks_log_probabilities = false;
};

struct TrainerDefaults {
  std::string_view framework;  ///< "": the job's usual one
  int zero_stage = 0;
  std::span<const FrameworkDefaults> under;
  std::span<const EngineDefaults> engines;  ///< the first is its usual one
  bool always_has_engine = false;
  bool judges_by_function = false;  ///< PPO without a reward model
  bool reference_on_host = false;   ///< its whole weights wait there
  bool actor_on_host = false;       ///< while an engine on its GPUs generates
};

}  // namespace shardplan
