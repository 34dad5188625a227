#include "load/ds_config/rules/deprecated/family.h"

#include <array>

namespace shardplan::config_rules::deprecated {

std::span<const OldKeyRule> all() {
  static const std::array kRules{
      deprecated_key(),     deprecated_twice(), deprecated_shadowed(),
      deprecated_ignored(), alias_twice(),      old_block(),
  };
  return kRules;
}

std::span<const RawConfigRule> raw() {
  static const std::array kRules{
      boolean_zero(),
      allgather_size_unread(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all(), raw());
}

}  // namespace shardplan::config_rules::deprecated
