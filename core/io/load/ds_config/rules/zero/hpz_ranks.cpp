#include <algorithm>

#include "load/ds_config/rules/zero/family.h"
#include "parallel/sharding.h"

namespace shardplan::config_rules::zero {

ConfigRule hpz_ranks() {
  return {
      .rule =
          {
              .id = "ds.hpz-ranks"_rule,
              .severity = Severity::error,
              .title = "zero_hpz_partition_size does not divide the ranks",
              .explanation = "The secondary shards need groups of equal size.",
              .source = kGroups,
              .advice = "Choose a divisor of the ranks.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const std::int64_t secondary = hpz_size(s.values);
            if (secondary == 0 || !s.context.world_size) return;
            const std::int64_t world = *s.context.world_size;
            if (world % std::min(secondary, world) != 0)
              report(kHpz, say("{} does not divide the {} ranks", secondary, world),
                     say("{}, or another divisor of {}", nearest_divisor(world, secondary), world));
          },
  };
}

}  // namespace shardplan::config_rules::zero
