// Every rule of the linter, by family.
#pragma once

#include <span>
#include <string_view>

#include "lint/rule.h"
#include "lint/subject.h"

namespace shardplan {

/// Rules of one subject. `check` finds those that the readers of the files do not report
/// themselves.
struct RuleFamily {
  std::string_view name;
  std::span<const Rule> rules;
  void (*check)(const LintSubject& subject, LintFindings& findings) = nullptr;
};

std::span<const RuleFamily> rule_families();

/// nullptr for a name that no rule has.
const Rule* find_rule(RuleId id);
const Rule* find_rule(std::string_view id);

}  // namespace shardplan
