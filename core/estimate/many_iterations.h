// Iterations whose longest answers differ, as an answer tells of them.
#pragma once

#include <cstdint>

namespace shardplan {

/// What the allocator holds over many iterations, bytes.
struct ManyIterations {
  std::int64_t count = 0;
  std::int64_t shortest = 0, longest = 0;  ///< of their longest answers, tokens
  std::int64_t alike = 0;                  ///< if all had the longest one
  std::int64_t reserved = 0;
};

}  // namespace shardplan
