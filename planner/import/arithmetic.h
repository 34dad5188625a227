// Sums of whole numbers, as a shell's $((...)) and expr have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardplan::importing {

/// The value of "8*4" or "(2 + 2) / 4": + - * / and brackets. Nothing for what is none.
std::optional<std::int64_t> arithmetic_value(std::string_view text);

}  // namespace shardplan::importing
