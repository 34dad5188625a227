// The stable name of a check: "ds.batch-triangle". What it means is said in the linter's rule
// table.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardplan {

/// A name that the compiler has looked at: lower-case words, dots and hyphens. An empty one belongs
/// to a finding that no rule stands for.
class RuleId {
 public:
  constexpr RuleId() = default;
  consteval explicit RuleId(std::string_view text) : text_(text) {
    bool dotted = false;
    for (const char c : text) {
      dotted = dotted || c == '.';
      const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      if (!word) throw "a rule's id is made of lower-case words, digits, '-' and '.'";
    }
    if (!dotted) throw "a rule's id begins with its family: ds.batch-triangle";
  }
  constexpr std::string_view text() const { return text_; }
  constexpr bool empty() const { return text_.empty(); }
  friend constexpr bool operator==(RuleId, RuleId) = default;

 private:
  std::string_view text_;
};

consteval RuleId operator""_rule(const char* text, std::size_t size) {
  return RuleId(std::string_view(text, size));
}

}  // namespace shardplan
