// The axes, limits and objective of a search as flags.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/job_options.h"
#include "questions/search/axes.h"
#include "questions/search/goal.h"
#include "questions/serving.h"

namespace shardplan::cli {

/// What of reinforcement learning is searched alone; empty: all.
struct RolloutAxes {
  std::vector<std::int64_t> micro_batches, degrees;
};

class SearchOptions {
 public:
  void add_flags(CLI::App& command);

  /// Axes as asked for. A field of the job that was given as a flag (--micro-batch 4) is not
  /// searched, unless its axis was asked for, too, which is an error that names both.
  AxisValues axes(const JobOptions& job_flags, const Plan& plan) const;

  /// Whether frameworks to try were named.
  bool asks_frameworks() const;

  /// Throws for limits that nothing can be held against, such as a cost without a price.
  Goal goal(const CostTerms& terms, const Plan& plan) const;

  /// Of a job that an engine serves: only degrees are searched.
  ServingGoal serving_goal(const JobOptions& job, const CostTerms& terms, const Plan& plan) const;

  /// Of reinforcement learning: batches, and degrees of its engine. Throws for other axes, and
  /// where no time is known to compare.
  RolloutAxes rollout_axes(const Job& job) const;

  /// `plan` with the memory that it may use.
  Plan limited(Plan plan) const;

 private:
  struct ListFlag {
    const char* flag;
    const char* pinned_by;  ///< the job's own flag
    std::string text;
    CLI::Option* option = nullptr;
  };
  const ListFlag& list(std::string_view flag) const;
  /// Throws InputError for an axis whose value `job` sets.
  void refuse_set_axes(const JobOptions& job) const;

  std::vector<ListFlag> lists_;
  std::optional<std::int64_t> global_batch_, gpu_memory_bytes_;
  std::string objective_;
  Limits limits_;
};

}  // namespace shardplan::cli
