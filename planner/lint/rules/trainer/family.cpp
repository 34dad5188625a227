#include "lint/rules/trainer/family.h"

#include <array>

namespace shardplan::lint_rules::trainer {

std::span<const ArgumentsRule> of_file() {
  static const std::array kRules{
      wrong_type(),
      misspelt_argument(),
      fp16_and_bf16(),
  };
  return kRules;
}

std::span<const LintRule> all() {
  static const std::array kRules{
      adafactor_with_optimizer(), optim_unused(), scheduler_unused(),
      checkpointing_block(),      other_config(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(of_file(), all());
}

}  // namespace shardplan::lint_rules::trainer
