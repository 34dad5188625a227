// TOML text to the same document type as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "json/document.h"
#include "json/positions.h"

namespace shardplan {

struct TomlDocument {
  Json value;
  KeyPositions positions;
};

/// Dates and times become their text. Throws InputError with line and column for malformed text,
/// and for more than a configuration has.
TomlDocument parse_toml(std::string_view text, const std::string& file);

}  // namespace shardplan
