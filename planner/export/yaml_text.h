// A document as YAML.
#pragma once

#include <string>

#include "json/document.h"

namespace shardplan {

/// Blocks for objects and lists of them, scalars as JSON writes them: PyYAML and YAML 1.2 read both
/// alike.
std::string yaml_text(const Json& document);

}  // namespace shardplan
