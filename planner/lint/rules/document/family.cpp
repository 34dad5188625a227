#include "lint/rules/document/family.h"

#include <array>

namespace shardplan::lint_rules::document {

std::span<const TextRule> of_text() {
  static const std::array kRules{
      comments(),
      repeated_key(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return {syntax(), comments().rule, duplicate_key(), repeated_key().rule, too_deep()};
}

}  // namespace shardplan::lint_rules::document
