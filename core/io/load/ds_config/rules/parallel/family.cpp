#include "load/ds_config/rules/parallel/family.h"

#include <array>

namespace shardplan::config_rules::parallel {

std::int64_t tensor_ranks(const DsValues& values) {
  return values.given("tensor_parallel") == nullptr ? 0
                                                    : values.integer("tensor_parallel.autotp_size");
}

std::int64_t sequence_ranks(const DsValues& values) {
  return values.maybe_integer("sequence_parallel_size").value_or(1);
}

std::span<const ConfigRule> all() {
  static const std::array kRules{
      pipeline_stage(),
      pipeline_block_stage(),
      pipeline_overlap(),
      autotp_off(),
      autotp_sizes(),
      autotp_sequence(),
      autotp_stage_3(),
      expert_load_balance(),
      expert_ranks(),
      expert_stage_3(),
      contiguous_without_partition(),
      contiguous_without_number(),
      vocabulary_size(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::config_rules::parallel
