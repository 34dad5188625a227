// The line and column of a byte of a text.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/diagnostic.h"

namespace shardplan {

/// Of the byte with that number, counted from 1; 0 is the start of the text.
TextPosition position_of(std::string_view text, std::size_t byte);

}  // namespace shardplan
