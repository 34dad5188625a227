#include "kernel_check/elements.h"

#include <Eigen/Core>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "device/fp8.h"

namespace shardplan::validator {
namespace {

/// An element of 8 bits, as its code.
template <DType kType>
struct Eight {
  std::uint8_t code = 0;
  Eight() = default;
  explicit Eight(double value) : code(encode_fp8(static_cast<float>(value), kType)) {}
  explicit operator double() const { return static_cast<double>(decode_fp8(code, kType)); }
};

template <class Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f64:
      return body(double{});
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(Eigen::bfloat16{});
    case DType::f16:
      return body(Eigen::half{});
    case DType::e4m3:
      return body(Eight<DType::e4m3>{});
    case DType::e5m2:
      return body(Eight<DType::e5m2>{});
    case DType::i32:
      return body(std::int32_t{});
    default:
      assert(false && "no such elements in these checks");
  }
}

}  // namespace

std::vector<std::byte> encode(const std::vector<double>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T element = static_cast<T>(values[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
  return bytes;
}

std::vector<double> decode(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> values(bytes.size() / static_cast<std::size_t>(size_of(dtype)));
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < values.size(); ++i) {
      T element{};
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<double>(element);
    }
  });
  return values;
}

}  // namespace shardplan::validator
