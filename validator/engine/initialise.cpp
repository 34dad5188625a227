#include "engine/initialise.h"

namespace shardplan::validator {

ElementRange resident_range(const Unit& unit, const Sharding& sharding) {
  if (sharding.stage < 3) return {0, sharding.padded(unit)};
  return {sharding.first(unit), sharding.shard(unit)};
}

void initialise(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                Weights& weights, std::uint32_t seed) {
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Unit& unit = units[u];
    const Tensor resident = weights.resident(static_cast<int>(u));
    runtime.device.zero(resident);
    const ElementRange here = resident_range(unit, sharding);
    for (const ParameterSpec& p : unit.parameters) {
      if (p.init.kind == Init::Kind::zeros) continue;
      for_each_run(p, [&](const Run& run) {
        const ElementRange part = overlap(here, p.offset + run.here, run.length);
        if (part.count == 0) return;
        const Tensor x = resident.slice(part.first - here.first, part.count);
        if (p.init.kind == Init::Kind::ones) {
          runtime.device.fill(x, 1);
        } else {
          const std::int64_t skipped = part.first - p.offset - run.here;
          runtime.device.fill_normal(x, p.init.stddev, seed,
                                     unit.first_element + p.whole_offset + run.whole + skipped);
        }
      });
    }
    weights.keep(static_cast<int>(u));
  }
}

}  // namespace shardplan::validator
