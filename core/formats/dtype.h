// Element types of tensors and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardplan {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, i8, b1 };

/// Bytes of one element. A boolean tensor takes one byte an element, as in PyTorch.
constexpr std::int64_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::i8:
    case DType::b1:
      return 1;
  }
  return 0;
}

/// The name used in job files: fp64, fp32, bf16, fp16, int64, int32, int8, bool.
constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f64:
      return "fp64";
    case DType::f32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "fp16";
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    case DType::i8:
      return "int8";
    case DType::b1:
      return "bool";
  }
  return "";
}

/// Accepts the names of name_of and PyTorch's (float32, bfloat16, float16, half, ...).
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace shardplan
