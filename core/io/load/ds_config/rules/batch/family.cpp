#include "load/ds_config/rules/batch/family.h"

#include <array>

namespace shardplan::config_rules::batch {

bool is_elastic(const ConfigSubject& s) {
  return s.values.flag("elasticity.enabled");
}

std::span<const ConfigRule> all() {
  static const std::array kRules{
      elastic_pipeline(), elastic_batch(),           elastic_batch_ignored(), batch_from_job(),
      batch_missing(),    sequence_parallel_ranks(), batch_triangle(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::config_rules::batch
