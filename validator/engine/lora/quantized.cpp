#include "engine/lora/quantized.h"

#include <algorithm>

namespace shardplan::validator {
namespace {

Tensor as_floats(const Tensor& bytes) {
  if (bytes.empty()) return {};
  return {bytes.address, DType::f32, Shape{bytes.numel() / size_of(DType::f32)}};
}

Tensor widened(Backend& device, const UnitTensors& from, std::size_t matrix, const Tensor& room) {
  const QuantizedMatrix& m = from.unit->quantized[matrix];
  const Tensor wide = room_of(m, room);
  device.widen(wide, nf4_matrix(*from.unit, m, from.weights));
  return wide;
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
  return widened(device, unit, static_cast<std::size_t>(l), room);
}

Tensor BlockQuantized::weight(Backend& device, Linear l, std::int64_t expert) const {
  const std::size_t each = experts.unit->quantized.size() / 2;
  const std::size_t before = l == Linear::up ? 0 : each;
  return widened(device, experts, before + static_cast<std::size_t>(expert), room);
}

std::int64_t largest_quantized(const std::vector<Unit>& units) {
  std::int64_t largest = 0;
  for (const Unit& unit : units)
    for (const QuantizedMatrix& m : unit.quantized)
      largest = std::max(largest, m.values.shape.numel());
  return largest;
}

}  // namespace shardplan::validator
