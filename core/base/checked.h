// 64-bit integer arithmetic that throws instead of wrapping. Sizes of real jobs fit easily; a
// product that does not is bad input that the front ends did not catch.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace shardplan {

struct OverflowError : std::overflow_error {
  OverflowError() : std::overflow_error("a size does not fit in 64 bits") {}
};

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) throw OverflowError();
  return r;
}

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) throw OverflowError();
  return r;
}

/// Smallest multiple of `unit` (> 0) that is at least `n` (>= 0).
inline std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return checked_mul((checked_add(n, unit - 1)) / unit, unit);
}

inline std::int64_t ceil_div(std::int64_t n, std::int64_t d) {
  return checked_add(n, d - 1) / d;
}

}  // namespace shardplan
