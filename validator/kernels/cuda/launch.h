// Where a kernel runs: its stream, and the scratch that all operations of a rank share. They may
// share it because they run one after the other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "device/errors.h"
#include "memory/tensor.h"

namespace shardplan::validator::cuda {

struct Launch {
  cudaStream_t stream = nullptr;
  Tensor workspace;

  /// `count` elements of scratch, aligned to 256 bytes, after `offset` bytes that are taken.
  template <class T>
  T* scratch(std::int64_t count, std::int64_t offset = 0) const {
    const std::int64_t end = offset + count * static_cast<std::int64_t>(sizeof(T));
    if (end > workspace.bytes()) {
      throw DeviceError("an operation needs " + std::to_string(end) + " bytes of workspace; " +
                        std::to_string(workspace.bytes()) + " were reserved");
    }
    return reinterpret_cast<T*>(workspace.address + static_cast<std::uintptr_t>(offset));
  }
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}

}  // namespace shardplan::validator::cuda
