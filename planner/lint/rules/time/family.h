// Where the step spends its time, and whether a key is behind it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::time {

inline constexpr std::string_view kTime = "docs/explanation/time.md";

inline constexpr const char* kStage = "zero_optimization.stage";
inline constexpr const char* kOffloadOptimizer = "zero_optimization.offload_optimizer";
inline constexpr const char* kOffloadParam = "zero_optimization.offload_param";

/// A part of a whole; 0 of nothing.
double share(double part, double whole);
std::string percent(double part);

bool offloads(const DsValues& values, const std::string& block);

/// The block that offloads: the optimizer's, or at stage 3 the parameters'; nullptr: none does.
const char* offload_block(const DsValues& values);

/// The job on its GPUs alone, where it can be estimated.
std::optional<Priced> without_offload(const PricedJob& job);

/// Of the step, waiting for other GPUs; and whether it is the network between nodes.
double waiting_share(const PricedJob& job);
inline constexpr double kLongWait = 0.3;
bool has_slow_network(const Cluster& cluster);

// The rules, one file each.
LintRule cpu_adam_build();
PricedRule slow_network();
PricedRule stage_3_traffic();
PricedRule launch_blocking();
PricedRule zero_stage_unneeded();
PricedRule zero_offload_unneeded();
PricedRule offload();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::span<const PricedRule> priced();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::time
