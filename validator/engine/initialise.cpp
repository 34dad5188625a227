#include "engine/initialise.h"

#include <utility>

#include "engine/lora/quantize.h"
#include "memory/elements.h"

namespace shardplan::validator {
namespace {

/// Random values in `room`, and then here.
std::vector<float> random_values(Backend& device, const QuantizedMatrix& m, std::uint32_t seed,
                                 const Tensor& room) {
  const Tensor x = room.slice(0, m.shape.numel());
  device.fill_normal(x, m.init.stddev, seed, m.first_element);
  std::vector<float> values;
  host::dispatch(x.dtype, [&](auto zero) {
    std::vector<decltype(zero)> here(static_cast<std::size_t>(x.numel()));
    device.download(std::as_writable_bytes(std::span(here)), x);
    values.resize(here.size());
    for (std::size_t i = 0; i < here.size(); ++i)
      values[i] = static_cast<float>(host::widen(here[i]));
  });
  return values;
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

void store_quantized(Backend& device, const Unit& unit, const QuantizedMatrix& matrix,
                     std::span<const float> values, const Tensor& resident,
                     const ElementRange& range) {
  const Nf4Bytes bytes = quantize_nf4(values, matrix.outer >= 0);
  for (const auto& [index, from] : {std::pair{matrix.codes, std::span(bytes.codes)},
                                    {matrix.scales, std::span(bytes.scales)},
                                    {matrix.outer, std::span(bytes.outer)}}) {
    if (index < 0) continue;
    const ParameterSpec& p = unit.parameters[static_cast<std::size_t>(index)];
    const ElementRange part = overlap(range, p.offset, p.shape.numel());
    if (part.count > 0)
      device.upload(resident.slice(part.first - range.first, part.count),
                    from.subspan(static_cast<std::size_t>(part.first - p.offset),
                                 static_cast<std::size_t>(part.count)));
  }
  device.synchronize();  // what was uploaded is gone afterwards
}

void initialise_unit(Runtime& runtime, const Unit& unit, const Sharding& sharding,
                     const Tensor& resident, std::uint32_t seed, const Tensor& room) {
  runtime.device.zero(resident);
  const ElementRange here = resident_range(unit, sharding);
  for (const ParameterSpec& p : unit.parameters)
    initialise_parameter(runtime, unit, p, resident, here, seed);
  for (const QuantizedMatrix& m : unit.quantized)
    store_quantized(runtime.device, unit, m, random_values(runtime.device, m, seed, room), resident,
                    here);
}

void initialise(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                Weights& weights, std::uint32_t seed, const Tensor& room) {
  for (std::size_t u = 0; u < units.size(); ++u) {
    const int unit = static_cast<int>(u);
    initialise_unit(runtime, units[u], sharding, weights.resident(unit), seed, room);
    weights.keep(unit);
  }
}

}  // namespace shardplan::validator
