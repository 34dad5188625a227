#include "load/ds_config/rules/zero/family.h"
#include "parallel/sharding.h"

namespace shardplan::config_rules::zero {

ConfigRule mics_ranks() {
  return {
      .rule =
          {
              .id = "ds.mics-ranks"_rule,
              .severity = Severity::error,
              .title = "mics_shard_size does not divide the ranks",
              .explanation = "Shard groups have equal sizes.",
              .source = kGroups,
              .advice = "Choose a divisor of the ranks.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const std::int64_t shard = mics_size(s.values);
            if (shard == 0 || !s.context.world_size) return;
            const std::int64_t world = *s.context.world_size;
            if (world % shard != 0)
              report(kMics, say("{} does not divide the {} ranks", shard, world),
                     say("{}, or another divisor of {}", nearest_divisor(world, shard), world));
          },
  };
}

}  // namespace shardplan::config_rules::zero
