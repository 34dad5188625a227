// Offload to NVMe: paths, requests, buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::nvme {

/// csrc/aio/py_lib/deepspeed_py_io_handle.cpp O_DIRECT_ALIGNMENT.
inline constexpr std::int64_t kAlignment = 512;

inline constexpr const char* kOffloadOptimizer = "zero_optimization.offload_optimizer";
inline constexpr const char* kOffloadParam = "zero_optimization.offload_param";

/// Whether a block of the two swaps to NVMe, which stage 3 does.
bool on_nvme(const DsValues& values, const std::string& block);
bool anything_on_nvme(const DsValues& values);

/// The nvme_path of each block that swaps and names one: the key and its value.
std::vector<std::pair<std::string, std::string>> nvme_paths(const DsValues& values);

// The rules, one file each.
LintRule relative_path();
LintRule volatile_path();
LintRule no_device();
LintRule block_size_alignment();
LintRule few_requests();
LintRule small_buffer();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::nvme
