// Feed-forward blocks and the composite activations of Hugging Face.
#pragma once

#include <string_view>

#include "model/layers/basic.h"

namespace shardplan {

/// gate_proj, up_proj, down_proj (SwiGLU and its kin).
struct GatedMlp {
  LinearModule gate, up, down;
};

/// Registers name.gate_proj, name.up_proj and name.down_proj, in that order.
GatedMlp gated_mlp(ModelBuilder& m, std::string_view name, std::int64_t hidden, std::int64_t ffn,
                   bool bias = false);

/// down(activation(gate(x)) · up(x)).
ValueId gated_mlp(Graph& g, const GatedMlp& m, OpKind activation, ValueId x);

/// The activation functions of transformers/activations.py.
enum class Activation : std::uint8_t {
  relu,
  gelu,      ///< fused, exact or tanh ("gelu", "gelu_pytorch_tanh")
  gelu_new,  ///< written out in eight elementwise operations ("gelu_new", "gelu_fast")
  silu,
  quick_gelu,
};

/// Reads an activation name; throws with the key for one that is not known.
Activation read_activation(const class ModelConfig& config, std::string_view key,
                           std::string_view fallback);

ValueId activate(Graph& g, Activation activation, ValueId x);

}  // namespace shardplan
