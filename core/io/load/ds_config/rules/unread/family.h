// Keys that are there and do nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "load/ds_config/schema.h"
#include "load/ds_config/subject.h"

namespace shardplan::config_rules::unread {

/// Whether a block of zero_optimization swaps to NVMe, as stage 3 does.
bool swaps(const DsValues& values, const std::string& block);

/// An offload block that offloads nothing is not worth a word.
bool switched_off(const DsNode& node, const DsValues& values);

// The rules, one file each.
ConfigRule no_effect_at_stage();
ConfigRule swap_key_unread();
ConfigRule aio_unread();

// In the order in which they are checked, and listed.
std::span<const ConfigRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::unread
