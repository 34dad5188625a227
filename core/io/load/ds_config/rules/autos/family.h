// "auto": what resolves it, and what does not.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "load/ds_config/lost_auto.h"

namespace shardplan::config_rules::autos {

inline constexpr std::string_view kTrainer =
    "transformers: integrations/deepspeed.py trainer_config_process, trainer_config_finalize";

// The rules, one file each.
LostAutoRule nobody_resolves();
LostAutoRule not_resolved();
LostAutoRule missing_input();

// In the order in which they are checked, and listed.
std::span<const LostAutoRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::autos
