// A unit: the parameters that are gathered, reduced and updated together. Embedding, each block,
// the experts of each block and the head are units. Its tensors lie behind each other in one flat
// array of the model's type, so that one collective and one kernel serve all of them.
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

/// How the ranks that share each layer have a parameter.
enum class Sharing : std::uint8_t {
  alike,   ///< the same on all of them, and so is its gradient
  summed,  ///< the same on all of them, but each makes a part of its gradient: of its rows or heads
  parts,   ///< each has elements of its own
};

/// Where a pipeline has a parameter.
enum class Ends : std::uint8_t {
  one,       ///< on one stage
  original,  ///< on the first stage, and the last one has a copy: both sum their gradients
  copy,      ///< the copy
};

/// Where values come from: `runs` of `length` elements that lie one behind the other here, and
/// `stride` apart in the undivided network's parameter.
struct Stretch {
  std::int64_t here = 0;   ///< element of the parameter
  std::int64_t whole = 0;  ///< element of the undivided one
  std::int64_t length = 0;
  std::int64_t runs = 1, stride = 0;
};

struct ParameterSpec {
  std::string name;
  Shape shape;
  Init init;
  std::int64_t offset = 0;  ///< elements, in the unit
  // Of the undivided network, of which this may be a part.
  Sharing sharing = Sharing::alike;
  Ends ends = Ends::one;
  Shape whole;                     ///< its shape there
  std::int64_t whole_offset = 0;   ///< elements, in the unit there
  std::vector<Stretch> stretches;  ///< all of its values; what they leave out is padding
};

/// One run of a parameter's stretches.
struct Run {
  std::int64_t here = 0, whole = 0, length = 0;
};

/// Calls visit(run) for all runs of all stretches.
template <typename Visit>
void for_each_run(const ParameterSpec& p, Visit&& visit) {
  for (const Stretch& s : p.stretches)
    for (std::int64_t i = 0; i < s.runs; ++i)
      visit(Run{s.here + i * s.length, s.whole + i * s.stride, s.length});
}

/// A matrix of 4 bits (device/nf4.h) among the bytes of a unit, and what it is made from.
struct QuantizedMatrix {
  ParameterSpec values;                     ///< "qkv.weight", in the block's unit without 4 bits
  int codes = -1, scales = -1, outer = -1;  ///< of the unit's parameters; no outer: scales are fp32
};

struct Unit {
  std::string name;  ///< "embedding", "blocks.3", "blocks.3.experts", "blocks.3.adapters", "head"
  /// Outer units have room of their own where blocks share (slots.h).
  enum class Kind : std::uint8_t {
    embedding,
    block,
    experts,
    quantized,
    quantized_experts,
    adapters,
    expert_adapters,
    head
  };
  Kind kind = Kind::block;
  std::vector<QuantizedMatrix> quantized;  ///< of units of bytes: all that is in them
  bool frozen = false;  ///< never trained: no gradient, no states; divided from stage 3 on
  std::vector<ParameterSpec> parameters;
  std::int64_t numel = 0;          ///< with the gaps of alignment
  std::int64_t first_element = 0;  ///< of the undivided model's numbering, for random bits

  DType stored_as(DType model) const { return of_bytes() ? DType::i8 : model; }
  bool of_bytes() const { return kind == Kind::quantized || kind == Kind::quantized_experts; }
  /// Divided as experts are, among ranks that have other experts of each layer.
  bool of_experts() const {
    return kind == Kind::experts || kind == Kind::quantized_experts ||
           kind == Kind::expert_adapters;
  }
  bool adapts() const { return kind == Kind::adapters || kind == Kind::expert_adapters; }
  /// Parameter `index` in the unit's flat array; empty when index is negative, or the array empty.
  Tensor parameter(const Tensor& flat, int index) const {
    if (index < 0 || flat.empty()) return {};
    const ParameterSpec& p = parameters[static_cast<std::size_t>(index)];
    return flat.slice(p.offset, p.shape.numel()).view(p.shape);
  }
};

/// Whether two stages have some of a unit that trains, and sum its gradient.
bool on_two_stages(const Unit& unit);

/// Appends a parameter and returns its index.
int add_parameter(Unit& unit, std::string name, Shape shape, Init init);

/// Numbers the elements of the model: each unit begins where the one before ended. Adapters come
/// last, so that what they are added to has the numbers that it has without them.
void number_elements(std::vector<Unit>& units);

/// Whether both put parameters of the same shapes at the same places.
bool same_layout(const Unit& a, const Unit& b);

}  // namespace shardplan::validator
