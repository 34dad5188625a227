// Hjson: what DeepSpeed reads its configuration files as.
#pragma once

#include <string>
#include <string_view>

#include "json/document.h"

namespace shardplan {

/// Parses `text` as Python's hjson 3.1 does (hjson/decoder.py): JSON, and besides it comments,
/// commas left out or too many, keys and strings without quotes, strings in single or triple
/// quotes, a document without its outer braces. A number with a fraction or an exponent is an
/// integer where it is whole and below 1e10. Repeated keys are refused, as DeepSpeed refuses them
/// (runtime/config_utils.py dict_raise_error_on_duplicate_keys). `file` names it in errors. Throws
/// InputError as parse_json does.
Json parse_hjson(std::string_view text, const std::string& file);

}  // namespace shardplan
