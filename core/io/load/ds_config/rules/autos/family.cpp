#include "load/ds_config/rules/autos/family.h"

#include <array>

namespace shardplan::config_rules::autos {

std::span<const LostAutoRule> all() {
  static const std::array kRules{
      nobody_resolves(),
      not_resolved(),
      missing_input(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::config_rules::autos
