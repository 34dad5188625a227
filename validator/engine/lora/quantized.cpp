#include "engine/lora/quantized.h"

#include <algorithm>

namespace shardplan::validator {
namespace {

Tensor as_floats(const Tensor& bytes) {
  if (bytes.empty()) return {};
  return {bytes.address, DType::f32, Shape{bytes.numel() / size_of(DType::f32)}};
}

}  // namespace

Nf4Matrix nf4_matrix(const Unit& unit, const QuantizedMatrix& m, const Tensor& bytes) {
  const Tensor scales = unit.parameter(bytes, m.scales);
  return {.codes = unit.parameter(bytes, m.codes),
          .scales = m.outer < 0 ? as_floats(scales) : scales,
          .outer = as_floats(unit.parameter(bytes, m.outer))};
}

Tensor room_of(const QuantizedMatrix& m, const Tensor& room) {
  return room.slice(0, m.values.shape.numel()).view(m.values.shape);
}

Tensor BlockQuantized::weight(Backend& device, Linear l) const {
  const QuantizedMatrix& m = unit.unit->quantized[static_cast<std::size_t>(l)];
  const Tensor wide = room_of(m, room);
  device.widen(wide, nf4_matrix(*unit.unit, m, unit.weights));
  return wide;
}

std::int64_t largest_quantized(const std::vector<Unit>& units) {
  std::int64_t largest = 0;
  for (const Unit& unit : units)
    for (const QuantizedMatrix& m : unit.quantized)
      largest = std::max(largest, m.values.shape.numel());
  return largest;
}

}  // namespace shardplan::validator
