// FNV-1a, a whole number at a time in place of a byte
// (http://www.isthe.com/chongo/tech/comp/fnv).
#pragma once

#include <cstdint>

namespace shardplan {

class Fnv {
 public:
  constexpr void add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001B3; }
  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

}  // namespace shardplan
