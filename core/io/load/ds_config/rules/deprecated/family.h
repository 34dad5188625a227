// Spellings of earlier versions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "load/ds_config/deprecated.h"

namespace shardplan::config_rules::deprecated {

inline constexpr std::string_view kField =
    "deepspeed/runtime/config_utils.py _process_deprecated_field, deepspeed/runtime/zero/config.py";
inline constexpr std::string_view kBoolean =
    "deepspeed/runtime/zero/config.py read_zero_config_deprecated";

// The rules, one file each.
OldKeyRule deprecated_key();
OldKeyRule deprecated_twice();
OldKeyRule deprecated_shadowed();
OldKeyRule deprecated_ignored();
OldKeyRule alias_twice();
RawConfigRule boolean_zero();
RawConfigRule allgather_size_unread();
OldKeyRule old_block();

// In the order in which they are checked, and listed.
std::span<const OldKeyRule> all();
std::span<const RawConfigRule> raw();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::deprecated
