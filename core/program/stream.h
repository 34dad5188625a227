// What works side by side on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardplan {

/// Each has blocks of its own in the caching allocator. `staging` makes ready what a collective
/// sends; it is never behind the host. `graphs` is where CUDA graphs are warmed up and recorded;
/// what they replay runs in the compute stream.
enum class Stream : std::uint8_t { compute, communication, copy, staging, graphs };
inline constexpr std::size_t kStreams = 5;

}  // namespace shardplan
