// JSON as Python's json module reads and writes it: what HF Trainer and accelerate read a ds_config
// with.
#pragma once

#include <string>
#include <string_view>

#include "json/document.h"

namespace shardplan {

/// Parses `text` as json.load does: Infinity, -Infinity and NaN are numbers, and of a repeated key
/// the last value counts. `file` names it in errors. Throws InputError as parse_json does.
Json parse_python_json(std::string_view text, const std::string& file);

/// The text that json.dump would write with an indent of two, Infinity and NaN included.
std::string dump_python_json(const Json& document);

}  // namespace shardplan
