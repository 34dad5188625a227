// What works side by side on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardplan {

/// Each has blocks of its own in the caching allocator. `staging` makes ready what a collective
/// sends; it is never behind the host. `graphs` is where CUDA graphs are warmed up and recorded;
/// what they replay runs in the compute stream. `engine` is where an engine that sleeps has weights
/// and cache: an allocator of its own (vllm/device_allocator/cumem.py), whose blocks the driver has
/// back as soon as it sleeps.
enum class Stream : std::uint8_t { compute, communication, copy, staging, graphs, engine };
inline constexpr std::size_t kStreams = 6;

}  // namespace shardplan
