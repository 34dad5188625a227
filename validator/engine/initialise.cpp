#include "engine/initialise.h"

#include "engine/lora/quantized.h"

namespace shardplan::validator {
namespace {

/// Of a matrix of 4 bits, before it is rounded.
void fill_randomly(Backend& device, const Unit& unit, const ParameterSpec& p, const Tensor& place,
                   std::uint32_t seed) {
  for_each_run(p, [&](const Run& run) {
    device.fill_normal(place.slice(run.here, run.length), p.init.stddev, seed,
                       unit.first_element + p.whole_offset + run.whole);
  });
}

void initialise_parameter(Runtime& runtime, const Unit& unit, const ParameterSpec& p,
                          const Tensor& resident, const ElementRange& here, std::uint32_t seed) {
  if (p.init.kind == Init::Kind::zeros) return;
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

}  // namespace

ElementRange resident_range(const Unit& unit, const Sharding& sharding) {
  if (sharding.stage < 3) return {0, sharding.padded(unit)};
  return {sharding.first(unit), sharding.shard(unit)};
}

void quantize_unit(Runtime& runtime, const Unit& unit, const Sharding& sharding,
                   const Weights& weights, int index, const Tensor& room, const FillMatrix& fill) {
  const Tensor all = weights.room_for_all(index), resident = weights.resident(index);
  runtime.device.zero(all);
  for (const QuantizedMatrix& m : unit.quantized) {
    const Tensor wide = room_of(m, room);
    fill(m.values, wide);
    runtime.device.quantize(nf4_matrix(unit, m, all), wide);
  }
  const Tensor part = all.slice(sharding.first(unit), sharding.shard(unit));
  if (part.address != resident.address) runtime.device.copy(resident, part);
}

void initialise_unit(Runtime& runtime, const Unit& unit, const Sharding& sharding,
                     const Tensor& resident, std::uint32_t seed) {
  runtime.device.zero(resident);
  const ElementRange here = resident_range(unit, sharding);
  for (const ParameterSpec& p : unit.parameters)
    initialise_parameter(runtime, unit, p, resident, here, seed);
}

void initialise(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                Weights& weights, std::uint32_t seed, const Tensor& room) {
  for (std::size_t u = 0; u < units.size(); ++u) {
    const int index = static_cast<int>(u);
    const Unit& unit = units[u];
    if (unit.quantized.empty()) {
      initialise_unit(runtime, unit, sharding, weights.resident(index), seed);
    } else {
      quantize_unit(runtime, unit, sharding, weights, index, room,
                    [&](const ParameterSpec& p, const Tensor& place) {
                      fill_randomly(runtime.device, unit, p, place, seed);
                    });
    }
    weights.keep(index);
  }
}

}  // namespace shardplan::validator
