// GPU memory of the job: what the estimate says, and which key is behind it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::memory {

inline constexpr std::string_view kEstimate = "docs/explanation/memory.md";

/// "1.20 GiB of 39.4 GiB on each GPU"
Said saved(std::int64_t bytes, const PricedJob& job);

/// Bytes of a category where the fullest GPU is at its peak.
std::int64_t at_peak(const Estimate& e, Category category);

bool at_least(std::int64_t part, std::int64_t whole, double share);

// The rules, one file each.
PricedRule fit_gpu();
PricedRule fit_gpu_tight();
PricedRule estimator_misleads();
PricedRule step_temporaries();
PricedRule logits();
PricedRule fragmentation();
PricedRule bucket();
PricedRule fp32();
PricedRule activations();
KeyCostRule better_value();

// In the order in which they are checked, and listed.
std::span<const PricedRule> priced();
std::span<const KeyCostRule> of_costs();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::memory
