// Embedded files as documents. They are this program's own and checked by its tests, so the plain
// parser is enough: it takes a third of the time of parse_json, which looks for keys that appear
// twice.
#pragma once

#include <string_view>

#include "json/document.h"

namespace shardplan {

/// The file at `path` below data/, for example "hardware/gpus.json".
Json embedded_json(std::string_view path);

}  // namespace shardplan
