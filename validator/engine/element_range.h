// Elements of a unit that lie behind each other.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardplan::validator {

struct ElementRange {
  std::int64_t first = 0, count = 0;
};

/// The part of [first, first + count) that is within `range`.
inline ElementRange overlap(const ElementRange& range, std::int64_t first, std::int64_t count) {
  const std::int64_t begin = std::max(range.first, first);
  const std::int64_t end = std::min(range.first + range.count, first + count);
  return {begin, std::max<std::int64_t>(0, end - begin)};
}

}  // namespace shardplan::validator
