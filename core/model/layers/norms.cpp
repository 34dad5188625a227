#include "model/layers/norms.h"

namespace shardplan {
namespace {

ValueId weight_of(Graph& g, const NormModule& m, std::int64_t weights) {
  Op op{OpKind::parameter};
  op.module = m.module;
  op.weight = m.weight;
  return g.op(op, {weights, Scale::one});
}

/// rsqrt(mean(x²) + ε) over groups of `width`.
ValueId inverse_root_mean_square(Graph& g, ValueId x, std::int64_t width) {
  const Extent in = g.value(x).extent;
  const Extent row{in.per / width, in.scale};
  const ValueId variance = g.op({OpKind::mean, {g.map(OpKind::power, x), kNone, kNone}}, row);
  return g.map(OpKind::rsqrt, g.map(OpKind::scalar, variance));
}

ValueId normal_of(Graph& g, const NormModule& m, ValueId wide) {
  const ValueId normal = g.map(OpKind::mul, wide, inverse_root_mean_square(g, wide, m.width));
  g.hold(wide, normal);
  return normal;
}

ValueId gemma_norm(Graph& g, const NormModule& m, ValueId x, std::int64_t weights) {
  const ValueId normal = normal_of(g, m, g.map(OpKind::to_f32, x));
  const ValueId weight = g.map(OpKind::to_f32, weight_of(g, m, weights));
  const ValueId scaled = g.map(OpKind::mul, normal, g.map(OpKind::scalar, weight));
  g.hold(normal, scaled);
  return g.map(OpKind::to_like, scaled, x);
}

ValueId wide_rms_norm(Graph& g, const NormModule& m, ValueId x, std::int64_t weights) {
  const ValueId normal = normal_of(g, m, g.map(OpKind::to_f32, x));
  const ValueId out = g.map(OpKind::to_like, g.times(weight_of(g, m, weights), normal), x);
  g.hold(normal, out);  // the call's own name for it
  return out;
}

ValueId cohere_norm(Graph& g, const NormModule& m, ValueId x, std::int64_t weights) {
  const ValueId wide = g.map(OpKind::to_f32, x);
  const Extent row{per(g, x) / m.width, g.value(x).extent.scale};
  const ValueId mean = g.op({OpKind::mean, {wide, kNone, kNone}}, row);
  // The difference is taken twice: once for the variance, once for the result.
  const ValueId inverse = inverse_root_mean_square(g, g.map(OpKind::add, wide, mean), m.width);
  const ValueId normal = g.map(OpKind::mul, g.map(OpKind::add, wide, mean), inverse);
  g.hold(wide, normal);
  const ValueId weight = g.map(OpKind::to_f32, weight_of(g, m, weights));
  return g.map(OpKind::to_like, g.times(weight, normal), x);
}

/// The sum 1 + weight is a tensor of its own, which autograd keeps. Autocast is told to stay away:
/// input, weight and bias are cast to its type before (modeling_nemotron.py,
/// _cast_if_autocast_enabled).
ValueId one_plus_norm(Graph& g, const NormModule& m, ValueId x) {
  g.set_autocast(false);
  const ValueId weight = g.map(OpKind::scalar, weight_of(g, m, m.width));
  Op op{OpKind::layer_norm,
        {g.map(OpKind::to_compute, x), g.map(OpKind::to_compute, weight), kNone}};
  op.module = m.module;
  op.bias = m.bias;
  op.side = {per(g, x) / m.width, g.value(x).extent.scale};
  const ValueId out = g.op(op, g.value(x).extent);
  g.set_autocast(true);
  return out;
}

/// Liger has none for Cohere's, Nemotron's and OLMo's norms.
const FusedKernel* kernel_of(const Graph& g, NormKind kind) {
  if (kind == NormKind::cohere || kind == NormKind::layer_one_plus || kind == NormKind::layer_bare)
    return nullptr;
  return g.fused(kind == NormKind::layer ? KernelName::layer_norm : KernelName::rms_norm);
}

}  // namespace

NormModule register_norm(ModelBuilder& m, NormKind kind, std::string_view name,
                         std::int64_t width) {
  if (kind == NormKind::layer_bare) return m.bare_norm(name, width);
  const bool centred = kind == NormKind::layer || kind == NormKind::layer_one_plus;
  return centred ? m.layer_norm(name, width) : m.rms_norm(name, width);
}

ValueId normalize(Graph& g, NormKind kind, const NormModule& m, ValueId x, std::int64_t weights) {
  const FusedKernel* kernel = kernel_of(g, kind);
  if (g.fuses() || kernel == nullptr) return normalize_unpatched(g, kind, m, x, weights);
  return kind == NormKind::layer ? layer_norm(g, m, x, kernel) : rms_norm_in_one(g, m, x, kernel);
}

ValueId normalize_unpatched(Graph& g, NormKind kind, const NormModule& m, ValueId x,
                            std::int64_t weights) {
  if (g.fuses()) {
    const bool centred =
        kind != NormKind::rms && kind != NormKind::rms_wide && kind != NormKind::gemma;
    return centred ? layer_norm(g, m, x) : rms_norm_in_one(g, m, x);
  }
  const std::int64_t all = weights > 0 ? weights : m.width;
  switch (kind) {
    case NormKind::rms:
      return rms_norm(g, m, x);
    case NormKind::rms_wide:
      return wide_rms_norm(g, m, x, all);
    case NormKind::gemma:
      return gemma_norm(g, m, x, all);
    case NormKind::cohere:
      return cohere_norm(g, m, x, all);
    case NormKind::layer_one_plus:
      return one_plus_norm(g, m, x);
    case NormKind::layer_bare:
      return g.map(OpKind::to_like, layer_norm(g, m, g.map(OpKind::to_f32, x)), x);
    case NormKind::layer:
      break;
  }
  return layer_norm(g, m, x);
}

}  // namespace shardplan
