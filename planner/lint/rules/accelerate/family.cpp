#include "lint/rules/accelerate/family.h"

#include <array>

namespace shardplan::lint_rules::accelerate {

const AccelerateConfig* deepspeed_launch(const LintSubject& s) {
  if (s.accelerate == nullptr) return nullptr;
  const AccelerateConfig& a = *s.accelerate;
  return a.distributed_type.empty() || a.deepspeed() ? &a : nullptr;
}

const AccelerateConfig* mixed_launch(const LintSubject& s) {
  const AccelerateConfig* a = deepspeed_launch(s);
  if (a == nullptr || a->deepspeed_file || !a->mixed_precision) return nullptr;
  return *a->mixed_precision == "fp16" || *a->mixed_precision == "bf16" ? a : nullptr;
}

std::span<const AccelerateRule> of_file() {
  static const std::array kRules{
      unknown_key(),
      unknown_deepspeed_key(),
      wrong_type(),
      no_distributed_type(),
  };
  return kRules;
}

std::span<const LintRule> all() {
  static const std::array kRules{
      processes(),       uneven_machines(),   fsdp_no_wrap(), not_deepspeed(), beside_config_file(),
      mixed_precision(), trainer_precision(), other_config(), zero3_init(),    accumulation(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(yaml_syntax(), of_file(), all());
}

}  // namespace shardplan::lint_rules::accelerate
