// The largest numbers that a job may say.
#pragma once

#include <cstdint>

namespace shardplan {

inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 31;  ///< of samples or tokens

}  // namespace shardplan
