// Embedded files as documents. They are packed while the program is built (io/pack): strings of
// known length are read faster than text that has to be searched for their ends.
#pragma once

#include <string_view>

#include "json/document.h"

namespace shardplan {

/// The file at `path` below data/, for example "hardware/gpus.json".
Json embedded_json(std::string_view path);

/// What embedded bytes mean: MessagePack.
Json unpacked(std::string_view bytes);

}  // namespace shardplan
