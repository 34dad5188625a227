#include "engine/initialise.h"

#include <algorithm>

namespace shardplan::validator {

ElementRange resident_range(const Unit& unit, const Sharding& sharding) {
  if (sharding.stage < 3) return {0, sharding.padded(unit)};
  return {sharding.first(unit), sharding.shard(unit)};
}

ElementRange overlap(const ElementRange& range, std::int64_t first, std::int64_t count) {
  const std::int64_t begin = std::max(range.first, first);
  const std::int64_t end = std::min(range.first + range.count, first + count);
  return {begin, std::max<std::int64_t>(0, end - begin)};
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
      const std::int64_t rows = p.init.rows > 0 ? p.init.rows : p.shape[0];
      const std::int64_t filled = p.shape.numel() / p.shape[0] * rows;
      const ElementRange part = overlap(here, p.offset, filled);
      if (part.count == 0) continue;
      const Tensor x = resident.slice(part.first - here.first, part.count);
      if (p.init.kind == Init::Kind::ones) {
        runtime.device.fill(x, 1);
      } else {
        runtime.device.fill_normal(x, p.init.stddev, seed, unit.first_element + part.first);
      }
    }
    weights.keep(static_cast<int>(u));
  }
}

}  // namespace shardplan::validator
