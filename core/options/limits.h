// The largest numbers that a job may say.
#pragma once

#include <cstdint>

namespace shardplan {

inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 31;  ///< of samples or tokens
inline constexpr std::int64_t kLargestDegree = 1 << 15;  ///< four of them multiply within 64 bits

}  // namespace shardplan
