// A field without a default: a description that leaves it out does not compile.
#pragma once

#include <type_traits>
#include <utility>

namespace shardplan {

/// Takes what a T takes and reads as one; functions are called through it.
template <typename T>
class Required {
 public:
  template <typename U>
  requires std::is_convertible_v<U, T>
  constexpr Required(U&& value) : value_(std::forward<U>(value)) {}

  constexpr operator const T&() const { return value_; }
  constexpr const T& get() const { return value_; }

 private:
  T value_;
};

}  // namespace shardplan
