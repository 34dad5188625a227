// What a search is for, what limits it, and how plans compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "questions/cost.h"

namespace shardplan {

enum class Objective : std::uint8_t { throughput, cost, gpus, memory };
std::string_view name_of(Objective objective);

/// Limits of one plan. GPU, host and NVMe memory are limited by the plan's cluster.
struct Limits {
  std::optional<double> step_seconds;
  std::optional<double> money_per_billion_tokens;
  std::optional<double> days;  ///< for Workload::tokens
};

struct Goal {
  Objective objective = Objective::throughput;
  Limits limits;
  CostTerms terms;
};

/// The longest step that `goal` allows a plan; infinite without limits.
double longest_step(const Plan& plan, const Goal& goal);

/// A plan as the search compares it, in units of what the models can tell apart: time for a token
/// in steps of half a per cent, live bytes in steps of 64 MiB. All are better when smaller.
struct Score {
  std::int64_t time = 0;    ///< of all GPUs together; 0 where no time is known
  std::int64_t memory = 0;  ///< live tensors, CUDA context and NCCL of one GPU
  std::int64_t gpus = 0;
  std::int64_t off_gpu = 0;  ///< kinds of states that it keeps off the GPU: what can go wrong there
  bool unknown_host = false;  ///< what the host has for them is not known
};
Score score_of(const Plan& plan, double step_seconds, std::int64_t device_bytes);

/// At least as good in all, and better in one; or alike and earlier in the space.
bool dominates(const Score& a, std::int64_t index_a, const Score& b, std::int64_t index_b);

/// Plans that fit come before those of which nobody knows whether the host has room; then what the
/// objective asks first, second and third; ties go to the earlier candidate.
bool better(Objective objective, const Score& a, std::int64_t index_a, const Score& b,
            std::int64_t index_b);

/// Of plans in that order, the one to run: the first of those with the fewest states off the GPU
/// among all that are as fast as the first one within the time model's own error.
std::size_t simplest_of_ties(Objective objective, const std::vector<Score>& best_first);

}  // namespace shardplan
