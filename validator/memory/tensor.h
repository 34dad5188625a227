// A view of a tensor on some device: address, element type, shape. It owns nothing; the arena that
// handed it out does. In a dry run addresses are offsets, and nothing reads them.
//
// Tensors are dense and row-major. A [rows, width] matrix may also be seen as [batch, sequence,
// width]: rows = batch · sequence, the sequence fastest.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/checked.h"
#include "formats/dtype.h"

namespace shardplan::validator {

class Shape {
 public:
  static constexpr std::size_t kMostDimensions = 4;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> dimensions) {
    assert(dimensions.size() <= kMostDimensions);
    for (const std::int64_t d : dimensions) dimensions_[count_++] = d;
  }
  constexpr std::size_t dimensions() const { return count_; }
  constexpr std::int64_t operator[](std::size_t i) const { return dimensions_[i]; }
  constexpr std::int64_t last() const { return count_ == 0 ? 1 : dimensions_[count_ - 1]; }
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (std::size_t i = 0; i < count_; ++i) n = checked_mul(n, dimensions_[i]);
    return n;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMostDimensions> dimensions_{};
  std::size_t count_ = 0;
};

struct Tensor {
  std::uintptr_t address = 0;
  DType dtype = DType::f32;
  Shape shape{0};

  std::int64_t numel() const { return shape.numel(); }
  std::int64_t bytes() const { return checked_mul(numel(), size_of(dtype)); }
  /// An absent optional operand: no bias, no branch.
  bool empty() const { return shape.numel() == 0; }
  std::int64_t width() const { return shape.last(); }
  std::int64_t rows() const { return empty() ? 0 : numel() / width(); }

  template <typename T>
  T* as() const {
    assert(static_cast<std::int64_t>(sizeof(T)) == size_of(dtype));
    return reinterpret_cast<T*>(address);
  }
  void* data() const { return reinterpret_cast<void*>(address); }

  /// `count` elements from the flat index `first` on.
  Tensor slice(std::int64_t first, std::int64_t count) const {
    assert(first >= 0 && count >= 0 && first + count <= numel());
    return {address + static_cast<std::uintptr_t>(first * size_of(dtype)), dtype, Shape{count}};
  }
  /// The same elements in another shape.
  Tensor view(Shape other) const {
    assert(other.numel() == numel());
    return {address, dtype, other};
  }
  /// Rows [first, first + count) of a matrix.
  Tensor row_range(std::int64_t first, std::int64_t count) const {
    return slice(first * width(), count * width()).view({count, width()});
  }
};

}  // namespace shardplan::validator
