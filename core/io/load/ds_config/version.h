// DeepSpeed's version numbers as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frameworks/deepspeed/options.h"

namespace shardplan {

/// "0.19.6", "v0.19.6", "0.19": a missing patch number is 0; a suffix such as "+cu124" or ".post1"
/// does not count. Anything else gives nullopt.
std::optional<DeepSpeedVersion> parse_deepspeed_version(std::string_view text);

/// "0.19.6"
std::string to_string(const DeepSpeedVersion& version);

}  // namespace shardplan
