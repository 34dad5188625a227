// YAML text to the same document type as JSON, read as PyYAML's safe_load reads it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "json/document.h"
#include "json/positions.h"

namespace shardplan {

struct YamlDocument {
  Json value;
  KeyPositions positions;
  std::vector<std::string> repeated;  ///< paths of keys that appear again; the last one counts
};

/// Scalars become null, booleans ("yes" and "off" too), numbers or strings by YAML 1.1's rules as
/// PyYAML applies them: 1e-5 without a point is a string. Of a key that appears twice the last one
/// counts, as PyYAML has it. Throws InputError for malformed text, or more than a configuration has
/// (aliases are expanded, and counted).
YamlDocument parse_yaml(std::string_view text, const std::string& file);

}  // namespace shardplan
