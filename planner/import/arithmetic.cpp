#include "import/arithmetic.h"

#include "base/ascii.h"
#include "base/checked.h"

namespace shardplan::importing {
namespace {

class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}

  std::optional<std::int64_t> value() {
    const auto sum = add(0);
    skip();
    return at_ == text_.size() ? sum : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<std::int64_t> add(int depth) {
    auto left = multiply(depth);
    for (;;) {
      const bool plus = take('+');
      if (!plus && !take('-')) return left;
      const auto right = multiply(depth);
      if (!left || !right) return std::nullopt;
      left = checked_add(*left, plus ? *right : checked_mul(*right, -1));
    }
  }
  std::optional<std::int64_t> multiply(int depth) {
    auto left = number(depth);
    for (;;) {
      const bool times = take('*');
      if (!times && !take('/')) return left;
      const auto right = number(depth);
      if (!left || !right || (!times && *right == 0)) return std::nullopt;
      left = times ? checked_mul(*left, *right) : *left / *right;
    }
  }
  std::optional<std::int64_t> number(int depth) {
    if (depth > 20) return std::nullopt;
    if (take('(')) {
      const auto inner = add(depth + 1);
      return take(')') ? inner : std::nullopt;
    }
    skip();
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      value = checked_add(checked_mul(value, 10), text_[at_] - '0');
    return at_ > begin ? std::optional(value) : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> arithmetic_value(std::string_view text) {
  return Arithmetic(text).value();
}

}  // namespace shardplan::importing
