// What works side by side on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardplan {

/// Each has blocks of its own in the caching allocator. `staging` makes ready what a collective
/// sends; it is never behind the host.
enum class Stream : std::uint8_t { compute, communication, copy, staging };
inline constexpr std::size_t kStreams = 4;

}  // namespace shardplan
