#include "model/layers/mlp.h"

#include <array>
#include <string>
#include <utility>

#include "model/config.h"

namespace shardplan {

GatedMlp gated_mlp(ModelBuilder& m, std::string_view name, std::int64_t hidden, std::int64_t ffn,
                   bool bias) {
  const std::string prefix(name);
  GatedMlp mlp;
  mlp.gate = m.linear(prefix + ".gate_proj", hidden, ffn, bias);
  mlp.up = m.linear(prefix + ".up_proj", hidden, ffn, bias);
  mlp.down = m.linear(prefix + ".down_proj", ffn, hidden, bias);
  return mlp;
}

ValueId gated_mlp(Graph& g, const GatedMlp& m, OpKind activation, ValueId x) {
  const ValueId gate = g.map(activation, apply(g, m.gate, x));
  return apply(g, m.down, g.map(OpKind::mul, gate, apply(g, m.up, x)));
}

Activation read_activation(const ModelConfig& config, std::string_view key,
                           std::string_view fallback) {
  static constexpr std::array<std::pair<std::string_view, Activation>, 10> kNames{{
      {"relu", Activation::relu},
      {"gelu", Activation::gelu},
      {"gelu_pytorch_tanh", Activation::gelu},
      {"gelu_python", Activation::gelu},
      {"gelu_new", Activation::gelu_new},
      {"gelu_fast", Activation::gelu_new},
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

ValueId activate(Graph& g, Activation activation, ValueId x) {
  switch (activation) {
    case Activation::relu:
      return g.map(OpKind::relu, x);
    case Activation::gelu:
      return g.map(OpKind::gelu, x);
    case Activation::silu:
      return g.map(OpKind::silu, x);
    case Activation::quick_gelu:
      return g.map(OpKind::mul, x, g.map(OpKind::sigmoid, g.map(OpKind::scalar, x)));
    case Activation::gelu_new:
      break;
  }
  // 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))): every factor is a tensor of its own.
  const ValueId cube = g.map(OpKind::scalar, g.map(OpKind::power, x));
  const ValueId inner = g.map(OpKind::scalar, g.map(OpKind::add, x, cube));
  const ValueId half = g.map(OpKind::scalar, x);
  const ValueId one_plus = g.map(OpKind::scalar, g.map(OpKind::tanh, inner));
  return g.map(OpKind::mul, half, one_plus);
}

}  // namespace shardplan
