// Bytes: a count of bytes that cannot be mixed up with a count of elements.
#pragma once

#include <compare>
#include <cstdint>

#include "base/checked.h"
#include "base/units.h"

namespace shardplan {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }
  double gib() const { return static_cast<double>(count_) / static_cast<double>(kGiB); }

  Bytes& operator+=(Bytes other) {
    count_ = checked_add(count_, other.count_);
    return *this;
  }
  Bytes& operator-=(Bytes other) {
    count_ = checked_add(count_, -other.count_);
    return *this;
  }
  friend Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend Bytes operator*(Bytes a, std::int64_t n) { return Bytes(checked_mul(a.count_, n)); }
  friend Bytes operator*(std::int64_t n, Bytes a) { return a * n; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  std::int64_t count_ = 0;
};

}  // namespace shardplan
