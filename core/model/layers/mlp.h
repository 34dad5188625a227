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

/// up_proj and down_proj, an activation between them.
struct PlainMlp {
  LinearModule up, down;
};

/// Registers name.up_proj and name.down_proj.
PlainMlp plain_mlp(ModelBuilder& m, std::string_view name, std::int64_t hidden, std::int64_t ffn,
                   bool bias = false);

/// gate and up as one linear of twice the width (Phi-3, GLM-4).
struct FusedGatedMlp {
  LinearModule gate_up, down;
};
FusedGatedMlp fused_gated_mlp(ModelBuilder& m, std::string_view name, std::int64_t hidden,
                              std::int64_t ffn);

/// The activation functions of transformers/activations.py.
enum class Activation : std::uint8_t {
  relu,
  relu2,        ///< the square of relu
  gelu,         ///< fused, exact or tanh ("gelu", "gelu_pytorch_tanh")
  gelu_new,     ///< written out in eight elementwise operations ("gelu_new", "gelu_accurate")
  gelu_fast,    ///< written out with products instead of a power
  gelu_python,  ///< written out with erf
  silu,
  tanh,
  quick_gelu,
};

/// Reads an activation name; throws with the key for one that is not known.
Activation read_activation(const class ModelConfig& config, std::string_view key,
                           std::string_view fallback);

/// activation(gate)·up, in one kernel where there is one.
ValueId gated(Graph& g, Activation activation, ValueId gate, ValueId up);

ValueId activate(Graph& g, Activation activation, ValueId x);

/// An activation with two numbers that train (transformers' XIELUActivation, without the package
/// that has a kernel for it).
struct Xielu {
  ModuleId module = kNone;
  ParameterId positive = kNone, negative = kNone;
};
/// Registers name.alpha_p and name.alpha_n.
Xielu xielu(ModelBuilder& m, std::string_view name);
ValueId apply(Graph& g, const Xielu& a, ValueId x);

/// down(activation(gate(x)) · up(x)).
ValueId gated_mlp(Graph& g, const GatedMlp& m, Activation activation, ValueId x);
/// down(activation(up(x))).
ValueId plain_mlp(Graph& g, const PlainMlp& m, Activation activation, ValueId x);
ValueId fused_gated_mlp(Graph& g, const FusedGatedMlp& m, Activation activation, ValueId x);

}  // namespace shardplan
