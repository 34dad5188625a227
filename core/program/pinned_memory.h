// Host memory that GPUs copy from and to.
#pragma once

#include <cstdint>

namespace shardplan {

/// Bytes that PyTorch's pinned-memory allocator takes for `bytes`: its blocks are powers of two
/// (aten/src/ATen/core/CachingHostAllocator.h).
std::int64_t pinned_block(std::int64_t bytes);

}  // namespace shardplan
