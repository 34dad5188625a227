#include "program/pinned_memory.h"

#include <bit>

namespace shardplan {

std::int64_t pinned_block(std::int64_t bytes) {
  if (bytes <= 0) return 0;
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
}

}  // namespace shardplan
