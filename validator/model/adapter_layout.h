// Where the adapters of a block are: for each of its matrices what is adapted, and the index of
// each tensor in the adapters' unit.
//
// A fused matrix (q, k and v; gate and up) is several layers of transformers, each with an adapter
// of its own. Their matrices A lie one below the other, as all read the same input, and so do
// their B.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/spec.h"
#include "model/unit.h"

namespace shardplan::validator {

/// The matrices of a block, in the order in which it computes with them.
enum class Linear : std::uint8_t { qkv, out, up, down };
inline constexpr std::array kLinears{Linear::qkv, Linear::out, Linear::up, Linear::down};
/// As its parameters are called: "qkv".
std::string_view name_of(Linear l);

/// A matrix is [outputs, inputs].
struct MatrixSides {
  std::int64_t outputs = 0, inputs = 0;
};
MatrixSides sides_of(const DecoderSpec& spec, Linear l);

/// Rows of a matrix that are one layer of transformers.
struct LayerRows {
  std::string name;  ///< "q_proj"
  std::int64_t first = 0, count = 0;
};

struct AdapterParameters {
  struct OfLinear {
    int a = -1;                    ///< [parts · rank, inputs]
    int b = -1;                    ///< [rows of all parts, rank]
    std::vector<LayerRows> parts;  ///< those that are adapted; empty: none
    bool of_experts = false;       ///< a and b of each expert, one behind the other, in their unit
  };
  std::array<OfLinear, kLinears.size()> linears;
  std::int64_t rank = 0;
  float scale = 1;

  const OfLinear& of(Linear l) const { return linears[static_cast<std::size_t>(l)]; }
  OfLinear& of(Linear l) { return linears[static_cast<std::size_t>(l)]; }
  /// Whether any is beside a matrix of the block itself, or of its experts.
  bool any(bool of_experts) const;
  /// The first in a block that is adapted.
  Linear lowest() const;
};

/// The layers of transformers that a matrix is made of.
std::vector<LayerRows> layers_of(const DecoderSpec& spec, Linear l);
/// Whether one of them is to have an adapter; of networks with LoRA.
bool is_adapted(const DecoderSpec& spec, const LayerRows& layer);

/// Whether the matrices of a layer's experts are to have adapters, as peft 0.21 takes
/// target_parameters (tuners/tuners_utils.py, _inject_parameters): by the ends of their names,
/// "mlp.experts.gate_up_proj" and "mlp.experts.down_proj" in transformers 5. `l`: up or down.
bool is_adapted_expert(const DecoderSpec& spec, Linear l);
/// How transformers 5 calls that matrix in the module of the experts: "gate_up_proj".
std::string_view expert_matrix(Linear l);

/// Appends those of the block's own matrices to a unit: A normal with the variance of peft's
/// kaiming_uniform_(a=√5), which is uniform up to 1/√inputs; B zero.
void add_adapters(Unit& unit, const DecoderSpec& spec, AdapterParameters& adapters);
/// And those of the experts that this rank has: [experts, rank, inputs] and [experts, outputs,
/// rank]. Gate and up have one together, as peft 0.21 has for the one parameter that they are
/// (tuners/lora/layer.py, ParamWrapper).
void add_expert_adapters(Unit& unit, const DecoderSpec& spec, AdapterParameters& adapters);

}  // namespace shardplan::validator
