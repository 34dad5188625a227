// The kernels that one operation starts, as a value.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>

#include "program/kernel.h"

namespace shardplan::tape {

/// No operation starts more than kMost; the list needs no memory of its own.
class KernelList {
 public:
  static constexpr std::size_t kMost = 20;

  void add(const Kernel& kernel) {
    assert(size_ < kMost);
    kernels_[size_++] = kernel;
  }
  std::size_t size() const { return size_; }
  const Kernel* begin() const { return kernels_.data(); }
  const Kernel* end() const { return kernels_.data() + size_; }
  const Kernel& operator[](std::size_t i) const { return kernels_[i]; }

 private:
  std::array<Kernel, kMost> kernels_;
  std::size_t size_ = 0;
};

/// A kernel that moves `bytes` for `elements`; no product.
inline Kernel memory_kernel(KernelKind kind, Issue issue, DType type, double bytes,
                            double elements) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.issue = issue;
  kernel.type = type;
  kernel.bytes = bytes;
  kernel.elements = elements;
  return kernel;
}

/// A call that starts nothing on the GPU.
inline Kernel call_kernel(Issue issue, DType type) {
  return memory_kernel(KernelKind::none, issue, type, 0, 0);
}

}  // namespace shardplan::tape
