// zero_optimization on this number of GPUs and nodes.
#pragma once

#include <span>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::zero {

inline constexpr const char* kHpz = "zero_optimization.zero_hpz_partition_size";
inline constexpr const char* kHierarchical = "zero_optimization.mics_hierarchical_params_gather";
inline constexpr const char* kQuantized = "zero_optimization.zero_quantized_gradients";

/// Whether the cluster is known and stage 3 shards over its nodes.
bool shards_on_cluster(const LintSubject& s);

// The rules, one file each.
LintRule single_rank();
LintRule hpz_across_nodes();
LintRule mics_hierarchical();
LintRule quantized_gradients_one_node();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::zero
