#include "engine/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardplan::validator {
namespace {

/// Llama 3 (transformers, modeling_rope_utils.py, _compute_llama3_parameters): wavelengths beyond
/// the old context are stretched by the factor, short ones are left, those between are blended.
double scaled(double frequency, const RotaryScaling& s) {
  if (!s.by_wavelength) return frequency / s.factor;
  const double positions = static_cast<double>(s.original_positions);
  const double turns = positions * frequency / (2 * std::numbers::pi);
  const double blend = std::clamp(
      (turns - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor), 0.0,
      1.0);
  return frequency * (blend + (1 - blend) / s.factor);
}

}  // namespace

std::vector<double> rotary_table(const Rotary& rotary, const RowPlaces& places,
                                 std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  std::vector<double> table(static_cast<std::size_t>(places.sequence * head_dim));
  for (std::int64_t i = 0; i < half; ++i) {
    double frequency =
        std::pow(rotary.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    if (rotary.scaling) frequency = scaled(frequency, *rotary.scaling);
    for (std::int64_t t = 0; t < places.sequence; ++t) {
      const double angle = static_cast<double>(places.of(t)) * frequency;
      table[static_cast<std::size_t>(t * head_dim + i)] = std::cos(angle);
      table[static_cast<std::size_t>(t * head_dim + half + i)] = std::sin(angle);
    }
  }
  return table;
}

}  // namespace shardplan::validator
