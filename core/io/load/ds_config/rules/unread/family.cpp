#include "load/ds_config/rules/unread/family.h"

#include <array>

namespace shardplan::config_rules::unread {

bool swaps(const DsValues& values, const std::string& block) {
  return values.stage() == 3 &&
         values.maybe_text("zero_optimization." + block + ".device").value_or("none") == "nvme";
}

bool switched_off(const DsNode& node, const DsValues& values) {
  return node.child("device") != nullptr &&
         values.maybe_text(node.path + ".device").value_or("none") == "none";
}

std::span<const ConfigRule> all() {
  static const std::array kRules{
      no_effect_at_stage(),
      swap_key_unread(),
      aio_unread(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::config_rules::unread
