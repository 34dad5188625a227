// Amounts as people write them: "15T", "8k", "512GB", "$2.50", "2,048".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardplan {

/// What the letters behind a number stand for.
enum class Magnitude : std::uint8_t {
  count,   ///< k, M, B (or G), T: powers of 1000, as parameters and tokens are counted
  length,  ///< k, M: powers of 1024, as lengths of contexts are: "8k" is 8,192
  bytes,   ///< kB, MB, GB, TB: powers of 1000; KiB, MiB, GiB, TiB: of 1024
};

/// The number that `text` is, or none. Blanks around it, commas between groups of three digits, '_'
/// between digits and a currency before it do not count; letters of any case. Finite, never below
/// 0.
std::optional<double> parse_quantity(std::string_view text, Magnitude magnitude = Magnitude::count);

}  // namespace shardplan
