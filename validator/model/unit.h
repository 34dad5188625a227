// A unit: the parameters that are gathered, reduced and updated together. Embedding, each block and
// the head are units. Its tensors lie behind each other in one flat array of the model's type, so
// that one collective and one kernel serve all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/tensor.h"

namespace shardplan::validator {

/// Every parameter starts at a multiple of this many elements, and so does every rank's shard.
inline constexpr std::int64_t kElementAlignment = 64;

struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal };
  Kind kind = Kind::zeros;
  float stddev = 0;
  std::int64_t rows = 0;  ///< normal: rows from here on are padding, zero; 0: no padding
};

struct ParameterSpec {
  std::string name;
  Shape shape;
  Init init;
  std::int64_t offset = 0;  ///< elements, in the unit
};

struct Unit {
  std::string name;  ///< "embedding", "blocks.3", "head"
  /// Outer units have room of their own where blocks share (slots.h).
  enum class Kind : std::uint8_t { embedding, block, head };
  Kind kind = Kind::block;
  std::vector<ParameterSpec> parameters;
  std::int64_t numel = 0;          ///< with the gaps of alignment
  std::int64_t first_element = 0;  ///< of the whole model's numbering, for random bits

  /// Parameter `index` in the unit's flat array; empty when index is negative.
  Tensor parameter(const Tensor& flat, int index) const {
    if (index < 0) return {};
    const ParameterSpec& p = parameters[static_cast<std::size_t>(index)];
    return flat.slice(p.offset, p.shape.numel()).view(p.shape);
  }
};

/// Appends a parameter and returns its index.
int add_parameter(Unit& unit, std::string name, Shape shape, Init init);

/// Numbers the elements of the model: each unit begins where the one before ended.
void number_elements(std::vector<Unit>& units);

/// Whether both put parameters of the same shapes at the same places.
bool same_layout(const Unit& a, const Unit& b);

}  // namespace shardplan::validator
