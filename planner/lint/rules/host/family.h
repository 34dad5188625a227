// Host memory, NVMe and saving.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::host {

inline constexpr const char* kGather =
    "zero_optimization.stage3_gather_16bit_weights_on_model_save";

/// Bytes of a host; nullopt where nothing was estimated or the memory is not known.
std::optional<std::int64_t> host_memory(const LintSubject& s);

// The rules, one file each.
LintRule pinned_by_default();
LintRule save_shards_only();
LintRule fit_host();
LintRule fit_nvme();
LintRule every_rank_loads();
LintRule save_gathers_on_host();
LintRule pinned();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::host
