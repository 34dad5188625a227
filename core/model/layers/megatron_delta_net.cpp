#include "model/layers/megatron_delta_net.h"

#include <array>

#include "model/layers/mlp.h"
#include "model/layers/scan_kernels.h"

namespace shardplan {
namespace {

/// A copy of a part of x, as reshape() makes it of columns that lie between others.
ValueId copied(Graph& g, ValueId x, std::int64_t width) {
  return g.op({OpKind::copy, {x, kNone, kNone}}, {width, g.value(x).extent.scale});
}

/// What the one projection makes: of queries, keys and values, of the gate, and of both numbers a
/// value head. The whole lives until the last part has been copied out of it.
struct Projected {
  ValueId mixed = kNone, gate = kNone, beta = kNone, alpha = kNone;
};

Projected project(Graph& g, const DeltaNet& d, ValueId normal) {
  const DeltaNetShape& s = d.shape;
  const std::int64_t mixed = 2 * s.keys() + s.values();
  std::array<ValueId, 4> from{};
  if (s.joined_projections) {
    const ValueId all = apply(g, d.qkv, normal), both = apply(g, d.b, normal);
    from = {all, all, both, both};
  } else {
    from = {apply(g, d.qkv, normal), apply(g, d.z, normal), apply(g, d.b, normal),
            apply(g, d.a, normal)};
  }
  Projected p;
  p.gate = copied(g, from[1], s.values());
  p.beta = copied(g, from[2], s.value_heads);
  p.alpha = copied(g, from[3], s.value_heads);
  p.mixed = copied(g, from[0], mixed);
  for (const ValueId part : from) g.hold(part, p.mixed);
  return p;
}

}  // namespace

void note_megatron_delta_nets(ModelBuilder& m) {
  m.facts().has_state = true;
  m.facts().assumed.emplace_back(
      "gated delta nets as mcore-bridge 1.6 and Megatron Core run them, after their source: no run "
      "confirms it");
}

ValueId apply_in_megatron(Graph& g, const ModelBuilder& m, const DeltaNet& d,
                          const NormModule& before, ValueId x) {
  const DeltaNetShape& s = d.shape;
  g.set_all_tokens(true);
  const Projected p = project(g, d, normalize(g, NormKind::gemma, before, x));
  const ValueId convolved = fused_convolution(g, m, d.convolution, p.mixed);
  const ValueId q = copied(g, convolved, s.keys()), k = copied(g, convolved, s.keys());
  DeltaRule in{.heads = s.value_heads, .key_dim = s.key_dim, .value_dim = s.value_dim};
  in.v = copied(g, convolved, s.values());
  const auto of_value_heads = [&](ValueId part) {  // repeat_interleave
    const ValueId normal = fused_unit_length(g, s.key_heads, part);
    const std::int64_t groups = s.value_heads / s.key_heads;
    return groups > 1 ? copied(g, normal, s.keys() * groups) : normal;
  };
  in.q = of_value_heads(q);
  in.k = of_value_heads(k);
  in.decay = decay_of(g, m, d, p.alpha);
  in.beta = g.map(OpKind::sigmoid, p.beta);
  const ValueId out = fused_delta_rule(g, in);
  const ValueId normal = normalize(g, NormKind::rms, d.norm, out);
  const ValueId y = apply(g, d.out, gated(g, Activation::silu, p.gate, normal));
  g.set_all_tokens(false);
  return y;
}

}  // namespace shardplan
