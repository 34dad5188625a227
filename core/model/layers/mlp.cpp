#include "model/layers/mlp.h"

#include <array>
#include <string>
#include <utility>

#include "model/config.h"

namespace shardplan {
namespace {

/// Of the class that Liger puts in place of a network's own, whatever the activation is.
const FusedKernel* gate_kernel(const Graph& g) {
  const FusedKernel* swiglu = g.fused(KernelName::swiglu);
  return swiglu != nullptr ? swiglu : g.fused(KernelName::geglu);
}

}  // namespace

GatedMlp gated_mlp(ModelBuilder& m, std::string_view name, std::int64_t hidden, std::int64_t ffn,
                   bool bias) {
  const std::string prefix(name);
  GatedMlp mlp;
  mlp.gate = m.linear(prefix + ".gate_proj", hidden, ffn, bias);
  mlp.up = m.linear(prefix + ".up_proj", hidden, ffn, bias);
  mlp.down = m.linear(prefix + ".down_proj", ffn, hidden, bias);
  return mlp;
}

ValueId gated_mlp(Graph& g, const GatedMlp& m, Activation activation, ValueId x) {
  const ValueId straight = apply(g, m.gate, x);
  if (g.fuses() || gate_kernel(g) != nullptr)
    return apply(g, m.down, gated(g, activation, straight, apply(g, m.up, x)));
  const ValueId gate = activate(g, activation, straight);
  return apply(g, m.down, g.map(OpKind::mul, gate, apply(g, m.up, x)));
}

PlainMlp plain_mlp(ModelBuilder& m, std::string_view name, std::int64_t hidden, std::int64_t ffn,
                   bool bias) {
  const std::string prefix(name);
  PlainMlp mlp;
  mlp.up = m.linear(prefix + ".up_proj", hidden, ffn, bias);
  mlp.down = m.linear(prefix + ".down_proj", ffn, hidden, bias);
  return mlp;
}

ValueId plain_mlp(Graph& g, const PlainMlp& m, Activation activation, ValueId x) {
  return apply(g, m.down, activate(g, activation, apply(g, m.up, x)));
}

FusedGatedMlp fused_gated_mlp(ModelBuilder& m, std::string_view name, std::int64_t hidden,
                              std::int64_t ffn) {
  const std::string prefix(name);
  FusedGatedMlp mlp;
  mlp.gate_up = m.linear(prefix + ".gate_up_proj", hidden, 2 * ffn);
  mlp.down = m.linear(prefix + ".down_proj", ffn, hidden);
  return mlp;
}

ValueId fused_gated_mlp(Graph& g, const FusedGatedMlp& m, Activation activation, ValueId x) {
  const ValueId both = apply(g, m.gate_up, x);
  if (g.fuses() || gate_kernel(g) != nullptr) {
    const ValueId mixed =
        gated(g, activation, slice(g, both, m.down.in), slice(g, both, m.down.in));
    const ValueId y = apply(g, m.down, mixed);
    if (!g.fuses()) g.hold(both, y);  // LigerPhi3SwiGLUMLP has names for both halves
    return y;
  }
  const ValueId gate = activate(g, activation, slice(g, both, m.down.in));
  return apply(g, m.down, g.map(OpKind::mul, slice(g, both, m.down.in), gate));
}

Activation read_activation(const ModelConfig& config, std::string_view key,
                           std::string_view fallback) {
  static constexpr std::array<std::pair<std::string_view, Activation>, 13> kNames{{
      {"relu", Activation::relu},
      {"relu2", Activation::relu2},
      {"gelu", Activation::gelu},
      {"gelu_pytorch_tanh", Activation::gelu},
      {"gelu_python", Activation::gelu_python},
      {"gelu_new", Activation::gelu_new},
      {"gelu_python_tanh", Activation::gelu_new},
      {"gelu_fast", Activation::gelu_fast},
      {"tanh", Activation::tanh},
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"quick_gelu", Activation::quick_gelu},
      {"gelu_accurate", Activation::gelu_new},
  }};
  const std::string name = config.text(key, fallback);
  for (const auto& [known, activation] : kNames)
    if (known == name) return activation;
  config.fail(key, "unknown activation '" + name + "'",
              "relu, gelu, gelu_pytorch_tanh, gelu_new, silu or quick_gelu");
}

ValueId gated(Graph& g, Activation activation, ValueId gate, ValueId up) {
  const FusedKernel* kernel = gate_kernel(g);
  if (g.fuses() || kernel != nullptr)
    return g.fused_op({OpKind::gated, {gate, up, kNone}}, kernel, g.value(gate).extent);
  return g.map(OpKind::mul, activate(g, activation, gate), up);
}

Xielu xielu(ModelBuilder& m, std::string_view name) {
  Xielu a;
  a.positive = m.tensor(std::string(name) + ".alpha_p", {1}, ParameterKind::other);
  a.negative = m.tensor(std::string(name) + ".alpha_n", {1}, ParameterKind::other);
  a.module = m.owner(a.positive);
  return a;
}

/// where(x > 0, p·x·x + b·x, (expm1(min(x, ε)) - x)·n + b·x), where b and ε are buffers.
ValueId apply(Graph& g, const Xielu& a, ValueId x) {
  const auto factor = [&](ParameterId id) {
    Op op{OpKind::parameter};
    op.module = a.module;
    op.weight = id;
    return g.map(OpKind::softplus, g.op(op, {1, Scale::one}));
  };
  const ValueId p = factor(a.positive), n = g.map(OpKind::scalar, factor(a.negative));
  const ValueId square = g.map(OpKind::mul, g.map(OpKind::mul, x, p), x);
  const ValueId above = g.map(OpKind::add, square, g.map(OpKind::scalar, x));
  const ValueId grown = g.map(OpKind::exponential, g.map(OpKind::clamp, x));
  const ValueId scaled = g.map(OpKind::mul, g.map(OpKind::add, grown, x), n);
  const ValueId below = g.map(OpKind::add, scaled, g.map(OpKind::scalar, x));
  Op choice{OpKind::masked, {above, below, kNone}};
  choice.side = g.value(x).extent;
  const ValueId y = g.op(choice, g.value(x).extent);
  g.hold(x, y);
  return y;
}

/// A number is added by an OpKind::add of one input, whose gradient is the result's own; times a
/// number makes a new one (OpKind::scalar).
ValueId activate(Graph& g, Activation activation, ValueId x) {
  if (g.fuses()) return g.map(OpKind::gelu, x);  // saves its input, whichever it is
  switch (activation) {
    case Activation::relu:
      return g.map(OpKind::relu, x);
    case Activation::relu2:
      return g.map(OpKind::power, g.map(OpKind::relu, x));
    case Activation::gelu:
      return g.map(OpKind::gelu, x);
    case Activation::silu:
      return g.map(OpKind::silu, x);
    case Activation::quick_gelu:
      return g.map(OpKind::mul, x, g.map(OpKind::sigmoid, g.map(OpKind::scalar, x)));
    case Activation::tanh:
      return g.map(OpKind::tanh, x);
    case Activation::gelu_python: {
      // erf keeps its argument: the same storage rule as a fused gelu's input.
      const ValueId error = g.map(OpKind::gelu, g.map(OpKind::scalar, x));
      return g.map(OpKind::mul, g.map(OpKind::scalar, x), g.map(OpKind::add, error));
    }
    case Activation::gelu_fast: {
      // 0.5·x·(1 + tanh(0.79788·x·(1 + 0.044715·x·x))).
      const ValueId square = g.map(OpKind::mul, g.map(OpKind::scalar, x), x);
      const ValueId inner =
          g.map(OpKind::mul, g.map(OpKind::scalar, x), g.map(OpKind::scalar, square));
      const ValueId one_plus = g.map(OpKind::add, g.map(OpKind::tanh, inner));
      return g.map(OpKind::mul, g.map(OpKind::scalar, x), one_plus);
    }
    case Activation::gelu_new:
      break;
  }
  // 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))): every factor is a tensor of its own.
  const ValueId half = g.map(OpKind::scalar, x);
  const ValueId cube = g.map(OpKind::scalar, g.map(OpKind::power, x));
  const ValueId inner = g.map(OpKind::scalar, g.map(OpKind::add, x, cube));
  const ValueId one_plus = g.map(OpKind::add, g.map(OpKind::tanh, inner));
  const ValueId y = g.map(OpKind::mul, half, one_plus);
  g.hold(x, y);
  return y;
}

}  // namespace shardplan
