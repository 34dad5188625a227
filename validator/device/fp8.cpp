#include "device/fp8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shardplan::validator {
namespace {

struct Fields {
  int mantissa;  ///< bits
  int bias;
};
constexpr Fields fields_of(DType type) {
  return type == DType::e4m3 ? Fields{3, 7} : Fields{2, 15};
}
constexpr unsigned kSign = 0x80;
constexpr unsigned kNan = 0x7F;  // of both types

float decoded(unsigned code, DType type) {
  const Fields f = fields_of(type);
  const unsigned magnitude = code & kNan;
  const unsigned mantissa = magnitude & ((1U << f.mantissa) - 1);
  const int exponent = static_cast<int>(magnitude >> f.mantissa);
  float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa)
                              : std::ldexp(static_cast<float>(mantissa + (1U << f.mantissa)),
                                           exponent - f.bias - f.mantissa);
  if (value > largest_fp8(type))
    value = type == DType::e5m2 && mantissa == 0 ? std::numeric_limits<float>::infinity()
                                                 : std::numeric_limits<float>::quiet_NaN();
  return (code & kSign) != 0 ? -value : value;
}

std::array<float, 256> table_of(DType type) {
  std::array<float, 256> table{};
  for (unsigned code = 0; code < table.size(); ++code) table[code] = decoded(code, type);
  return table;
}

}  // namespace

std::uint8_t encode_fp8(float x, DType type) {
  const Fields f = fields_of(type);
  const unsigned sign = std::signbit(x) ? kSign : 0;
  if (std::isnan(x)) return static_cast<std::uint8_t>(sign | kNan);
  const float magnitude = std::min(std::abs(x), largest_fp8(type));
  if (magnitude == 0) return static_cast<std::uint8_t>(sign);
  // Below the least normal number steps do not shrink any more.
  const int exponent = std::max(std::ilogb(magnitude), 1 - f.bias);
  const auto steps =
      static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, f.mantissa - exponent)));
  // Normal numbers have 2^mantissa steps below theirs, which the exponent counts.
  const unsigned code = (static_cast<unsigned>(exponent + f.bias - 1) << f.mantissa) + steps;
  return static_cast<std::uint8_t>(sign | code);
}

float decode_fp8(std::uint8_t code, DType type) {
  static const std::array<float, 256> kE4m3 = table_of(DType::e4m3), kE5m2 = table_of(DType::e5m2);
  return type == DType::e4m3 ? kE4m3[code] : kE5m2[code];
}

float fp8_scale(float magnitude, DType type, bool power_of_two) {
  const double least = std::max(static_cast<double>(magnitude), kLeastFp8Magnitude);
  const auto scale = static_cast<float>(static_cast<double>(largest_fp8(type)) / least);
  return power_of_two && scale > 0 ? std::ldexp(1.0F, std::ilogb(scale)) : scale;
}

}  // namespace shardplan::validator
