#include "load/ds_config/rules/zero/family.h"

#include <algorithm>
#include <array>

namespace shardplan::config_rules::zero {

std::string device_of(const DsValues& values, const std::string& block) {
  return values.maybe_text("zero_optimization." + block + ".device").value_or("none");
}

std::int64_t hpz_size(const DsValues& values) {
  const std::int64_t ranks = values.stage() == 3 ? values.integer(kHpz) : 0;
  return ranks > 1 ? ranks : 0;
}

std::int64_t mics_size(const DsValues& values) {
  return values.stage() == 3 ? std::max<std::int64_t>(0, values.integer(kMics)) : 0;
}

std::int64_t mics_replicas(const ConfigSubject& s) {
  const std::int64_t shard = mics_size(s.values);
  if (shard == 0 || !s.context.world_size || *s.context.world_size % shard != 0) return 0;
  return *s.context.world_size / shard;
}

bool compiles_deeply(const DsValues& values) {
  return values.flag("compile.deepcompile");
}

std::span<const ConfigRule> all() {
  static const std::array kRules{
      zero_block_missing(),
      zero_block_wanted(),
      legacy_stage1(),
      elastic_checkpoint(),
      predivide_with_reduce_scatter(),
      prescale_with_reduce_scatter(),
      sum_reduction(),
      odd_allgather_bucket(),
      quantized_gradients_reduction(),
      partial_offload_stage(),
      nvme_below_stage_3(),
      nvme_path_missing(),
      nvme_buffer_count(),
      hpz_nvme(),
      mics_ignores(),
      quantized_gradients_type(),
      hpz_ranks(),
      mics_ranks(),
      mics_offload(),
      mics_copies(),
      deepcompile_without_zero(),
      deepcompile_offloads(),
      deepcompile_two_offloads(),
      deepcompile_offload_optimizer(),
      unmanaged_accumulation(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::config_rules::zero
