// Embedded files as documents. They are this program's own and checked by its tests, so that
// nothing has to be looked for again (known_json.h).
#pragma once

#include <string_view>

#include "json/document.h"

namespace shardplan {

/// The file at `path` below data/, for example "hardware/gpus.json".
Json embedded_json(std::string_view path);

}  // namespace shardplan
