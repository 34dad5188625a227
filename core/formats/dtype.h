// Element types of tensors, and types that products are computed in: one row each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/number_format.h"

namespace shardplan {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, i8, b1, tf32, e4m3, e5m2, e2m1 };

/// By DType. A boolean tensor takes one byte an element, as in PyTorch; tf32 is how fp32 tensors
/// may be multiplied; e4m3 and e5m2 are those of OCP's 8-bit floating point specification (OFP8),
/// and e2m1 that of its MX formats, two elements to a byte.
inline constexpr std::array<NumberFormat, 12> kDTypes{{
    {.name = "fp64",
     .other_names = {"float64"},
     .bits = 64,
     .sums = DType::f64,
     .uses = kTensorType},
    {.name = "fp32",
     .other_names = {"float32", "float"},
     .bits = 32,
     .rate = PeakRate::fp32,
     .sums = DType::f32,
     .uses = kTensorType | kTrainingType},
    {.name = "bf16",
     .other_names = {"bfloat16"},
     .bits = 16,
     .rate = PeakRate::bf16,
     .sums = DType::f32,
     .uses = kTensorType | kTrainingType},
    {.name = "fp16",
     .other_names = {"float16", "half"},
     .bits = 16,
     .rate = PeakRate::fp16,
     .sums = DType::f32,
     .uses = kTensorType | kTrainingType},
    {.name = "int64", .other_names = {}, .bits = 64, .uses = kTensorType},
    {.name = "int32", .other_names = {}, .bits = 32, .uses = kTensorType},
    {.name = "int8",
     .other_names = {},
     .bits = 8,
     .rate = PeakRate::int8,
     .sums = DType::i32,
     .uses = kTensorType},
    {.name = "bool", .other_names = {}, .bits = 8, .uses = kTensorType},
    {.name = "tf32", .other_names = {}, .bits = 32, .rate = PeakRate::tf32, .sums = DType::f32},
    {.name = "fp8_e4m3",
     .other_names = {"float8_e4m3fn"},
     .bits = 8,
     .rate = PeakRate::fp8,
     .sums = DType::f32,
     .uses = kTensorType},
    {.name = "fp8_e5m2",
     .other_names = {"float8_e5m2"},
     .bits = 8,
     .rate = PeakRate::fp8,
     .sums = DType::f32,
     .uses = kTensorType},
    {.name = "fp4_e2m1",
     .other_names = {"float4_e2m1fn_x2"},
     .bits = 4,
     .rate = PeakRate::fp4,
     .sums = DType::f32},
}};

constexpr const NumberFormat& format_of(DType type) {
  return kDTypes[static_cast<std::size_t>(type)];
}

/// Bytes of one element, at least one.
constexpr std::int64_t size_of(DType type) {
  return (format_of(type).bits + 7) / 8;
}

/// The name used in job files: fp64, fp32, bf16, fp16, int64, int32, int8, bool, ...
constexpr std::string_view name_of(DType type) {
  return format_of(type).name;
}

/// Accepts the names of name_of and PyTorch's (float32, bfloat16, float16, half, ...), of the types
/// that have all of `uses`.
std::optional<DType> parse_dtype(std::string_view name, unsigned uses = kTensorType);

/// The names of the types that have all of `uses`.
std::vector<std::string> dtype_names(unsigned uses);

}  // namespace shardplan
