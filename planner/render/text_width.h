// How wide texts for people are: a terminal says, everybody else gets the same lines.
#pragma once

#include <algorithm>
#include <cstddef>

namespace shardplan {

/// Sets the width of what this thread writes while this lives.
class TextWidth {
 public:
  static constexpr std::size_t kUsual = 100;  ///< columns; lines that are longer read badly
  static constexpr std::size_t kLeast = 40;

  explicit TextWidth(std::size_t columns) : outer_(columns_of_thread()) {
    columns_of_thread() = std::clamp(columns, kLeast, kUsual);
  }
  ~TextWidth() { columns_of_thread() = outer_; }
  TextWidth(const TextWidth&) = delete;
  TextWidth& operator=(const TextWidth&) = delete;

  static std::size_t current() { return columns_of_thread(); }

 private:
  static std::size_t& columns_of_thread() {
    thread_local std::size_t columns = kUsual;
    return columns;
  }

  std::size_t outer_;
};

}  // namespace shardplan
