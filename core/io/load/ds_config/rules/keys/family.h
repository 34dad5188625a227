// Single keys of a ds_config: known or not, of the right type, in range.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "load/ds_config/keys.h"

namespace shardplan::config_rules::keys {

inline constexpr std::string_view kTyped = "deepspeed/runtime/config_utils.py DeepSpeedConfigModel";
inline constexpr std::string_view kPlain =
    "deepspeed/runtime/config.py, where blocks are dictionaries";
inline constexpr std::string_view kSchema = "data/deepspeed/schema.json, from DeepSpeed's sources";

/// The key that an unknown one may be meant for: a sibling, or the same name in another block.
std::string nearest_key(const MetKey& key);

/// "DeepSpeed 0.15.0 does not know this key, which came with 0.16.4"
Said version_text(const MetKey& key);

/// Typed blocks and the top level refuse null; plain dictionaries hand on None in place of the
/// default.
bool refuses_null(const MetKey& key);

/// What was found, and what belongs there.
void report_value(const MetKey& key, const Report& report);

// The rules, one file each.
KeyRule unknown_key();
KeyRule unknown_key_ignored();
KeyRule unknown_argument();
KeyRule inference_key();
KeyRule inference_key_ignored();
KeyRule key_of_other_version();
KeyRule key_of_other_version_ignored();
KeyRule wrong_type();
KeyRule out_of_range();
KeyRule not_a_choice();
KeyRule not_an_object();
KeyRule misread_value();
KeyRule null_value();
KeyRule null_replaces_default();
OverflowRule number_too_large();

// In the order in which they are checked, and listed.
std::span<const KeyRule> all();
std::span<const OverflowRule> of_overflow();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::keys
