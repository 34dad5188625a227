// Why a parser refuses a text, in sentences whose parts can be said in other languages.
#pragma once

#include <string_view>

#include "base/said.h"

namespace shardplan {

/// `what`: of nlohmann's parse_error or out_of_range. "found '}', expected a string".
Said json_reason(std::string_view what);

/// `description`: of toml++'s parse_error. "found '=', expected value".
Said toml_reason(std::string_view description);

}  // namespace shardplan
