// Random bits that depend on a seed and an element's index alone, so that host and GPU, one rank
// and many, draw the same. constexpr: also callable in device code (--expt-relaxed-constexpr).
#pragma once

#include <cstdint>

namespace shardplan::validator {

/// A well-mixed 64-bit word (the finaliser of SplitMix64) of a counter.
[[gnu::always_inline]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

/// Stream `stream` (a step, a tensor) of `seed`: its element `index` has the bits of
/// mixed(random_stream(...) ^ index).
constexpr std::uint64_t random_stream(std::uint32_t seed, std::uint64_t stream) {
  return mixed((static_cast<std::uint64_t>(seed) << 32U) ^ stream);
}
constexpr std::uint64_t random_bits(std::uint32_t seed, std::uint64_t stream, std::uint64_t index) {
  return mixed(random_stream(seed, stream) ^ index);
}

/// Uniform in (0, 1], from the upper 24 bits of a 32-bit word: never 0, so that its log exists.
constexpr float unit_interval(std::uint32_t bits) {
  return static_cast<float>((bits >> 8U) + 1U) * 0x1p-24F;
}

/// fill_normal: element i is √(−2·ln u₁) · cos(2π·u₂) of random_bits(seed, kNormalStream, i), with
/// u₁ from the lower and u₂ from the upper word.
inline constexpr std::uint64_t kNormalStream = 0x6E6F726DULL;

/// bf16 of an fp32 word, rounded up with the probability of the 16 bits that are cut off. Infinity
/// and NaN stay what they are.
[[gnu::always_inline]] constexpr std::uint16_t stochastic_bf16(std::uint32_t fp32,
                                                               std::uint16_t random) {
  const bool finite = (fp32 & 0x7F800000U) != 0x7F800000U;
  const std::uint32_t rounded =
      finite ? fp32 + random : fp32 | ((fp32 & 0xFFFFU) != 0 ? 0x10000U : 0U);
  return static_cast<std::uint16_t>(rounded >> 16U);
}

/// AdamW's draws for one element: bits 0-15 round the parameter, 16-31 the first moment, 32-47 the
/// second, of random_bits(seed, step, index in the model).

}  // namespace shardplan::validator
