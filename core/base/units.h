// Units: memory in binary ones, rates and counts in decimal ones.
#pragma once

#include <cstdint>

namespace shardplan {

inline constexpr std::int64_t kKiB = std::int64_t{1} << 10;
inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

inline constexpr double kMicrosecond = 1e-6;
inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;

}  // namespace shardplan
