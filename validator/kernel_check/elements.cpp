#include "kernel_check/elements.h"

#include <Eigen/Core>
#include <cassert>
#include <cstdint>
#include <cstring>

namespace shardplan::validator {
namespace {

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
