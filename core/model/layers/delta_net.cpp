#include "model/layers/delta_net.h"

#include "model/layers/scan_kernels.h"

namespace shardplan {
namespace {

constexpr std::int64_t kChunk = 64;  ///< tokens (chunk_size)

/// A tensor with `per` elements for each token of whole chunks, or for each chunk.
Extent in_chunks(std::int64_t per, Scale scale = Scale::chunk_tokens) {
  return {per, scale, 1, kChunk};
}

/// `kind` from x to `per` elements of each token.
ValueId make(Graph& g, OpKind kind, ValueId x, std::int64_t per, ValueId other = kNone) {
  Extent extent = g.value(x).extent;
  extent.per = per;
  return g.op({kind, {x, other, kNone}}, extent);
}

ValueId product(Graph& g, ValueId a, ValueId b, std::int64_t per, std::int64_t work) {
  Op op{OpKind::matmul, {a, b, kNone}};
  op.work = in_chunks(work);
  return g.op(op, in_chunks(per));
}

/// x·rsqrt(Σx² + ε) over the columns of each head.
ValueId unit_length(Graph& g, ValueId x, std::int64_t heads) {
  const ValueId squares = g.map(OpKind::mul, x, x);
  const ValueId sum = g.map(OpKind::scalar, make(g, OpKind::mean, squares, heads));
  return g.map(OpKind::mul, x, g.map(OpKind::rsqrt, sum));
}

/// What every chunk makes for itself, of all chunks at once.
struct Chunks {
  ValueId new_values = kNone, decayed_keys = kNone, inner = kNone, q = kNone, k = kNone,
          decay = kNone;
};

/// `f32`: the network computes in fp32 throughout. Then nothing is cast, heads stay interleaved
/// with tokens, and a product of chunks copies its operands.
Chunks make_chunks(Graph& g, const DeltaNetShape& s, const DeltaRule& in, bool f32) {
  const std::int64_t heads = s.value_heads, square = heads * kChunk;
  const std::int64_t keys = heads * s.key_dim, values = heads * s.value_dim;
  const auto wide = [&](ValueId x) { return g.map(OpKind::to_f32, x); };
  const auto folded = [&](ValueId x) { return f32 ? g.map(OpKind::copy, x) : x; };
  ValueId q = wide(in.q), k = wide(in.k);
  q = unit_length(g, q, heads);
  k = unit_length(g, k, heads);
  // F.pad copies where there is nothing to pad too.
  const auto padded = [&](ValueId x) {
    return g.op({OpKind::copy, {x, kNone, kNone}}, in_chunks(g.value(x).extent.per));
  };
  q = padded(g.map(OpKind::scalar, q));
  k = padded(k);
  const ValueId v = padded(wide(in.v)), beta = padded(wide(in.beta));
  const ValueId decay = padded(wide(in.decay));
  const ValueId beta_v = g.map(OpKind::mul, v, beta), beta_k = g.map(OpKind::mul, k, beta);
  const ValueId sum = g.map(OpKind::scalar, decay);  // cumsum
  const ValueId difference = make(g, OpKind::scalar, sum, square);
  const ValueId pairwise = g.map(OpKind::exponential, g.map(OpKind::scalar, difference));
  const auto exp_sum = [&] { return g.map(OpKind::exponential, sum); };
  Chunks c;
  const ValueId system = g.map(
      OpKind::mul, product(g, folded(beta_k), folded(k), square, square * s.key_dim), pairwise);
  c.inner =
      g.map(OpKind::mul, product(g, folded(q), folded(k), square, square * s.key_dim), pairwise);
  const ValueId decayed = g.map(OpKind::mul, beta_k, exp_sum());
  c.new_values = make(g, OpKind::solve, system, values, beta_v);
  c.decayed_keys = make(g, OpKind::solve, system, keys, decayed);
  c.q = g.map(OpKind::mul, q, exp_sum());
  if (f32 && s.value_heads > s.key_heads) c.q = folded(c.q);
  const ValueId left = g.map(OpKind::exponential, g.map(OpKind::scalar, sum));
  c.k = g.map(OpKind::mul, k, left);
  if (f32 && s.value_heads > s.key_heads) c.k = folded(c.k);
  c.decay = g.op({OpKind::exponential, {sum, kNone, kNone}}, in_chunks(heads, Scale::chunks));
  return c;
}

/// The chunks one after the other: each reads the state that the one before it left.
ValueId through_state(Graph& g, const DeltaNetShape& s, const Chunks& c) {
  const std::int64_t heads = s.value_heads, values = heads * s.value_dim;
  const std::int64_t work = heads * s.key_dim * s.value_dim;
  const Extent state = in_chunks(work, Scale::chunks);
  // The gradient reaches a state from the chunk behind it: here the states of all chunks are one
  // tensor, made of what the keys add.
  Op adds{OpKind::matmul, {c.k, c.new_values, kNone}};
  adds.work = in_chunks(work);
  const ValueId states = g.op({OpKind::scalar, {c.decay, kNone, kNone}}, state);
  const ValueId seen = product(g, c.decayed_keys, states, values, work);
  const ValueId v = g.map(OpKind::add, c.new_values, seen);
  const ValueId inter = product(g, c.q, states, values, work);
  const ValueId intra = product(g, c.inner, v, values, values * kChunk);
  const ValueId out = g.map(OpKind::add, inter, intra);
  const ValueId kept = g.map(OpKind::mul, states, c.decay);
  adds.in[1] = v;
  const ValueId last = g.map(OpKind::add, kept, g.op(adds, state));
  g.hold(last, out);
  return g.view(out, {values, Scale::tokens});
}

/// RMSNorm over each head, times silu of the gate, in fp32.
ValueId gated_norm(Graph& g, const ModelBuilder& m, const NormModule& norm, ValueId x, ValueId z) {
  const std::int64_t all = per(g, x);
  const ValueId wide = g.map(OpKind::to_f32, x);
  const ValueId variance = make(g, OpKind::mean, g.map(OpKind::power, wide), all / norm.width);
  const ValueId inverse = g.map(OpKind::rsqrt, g.map(OpKind::scalar, variance));
  const ValueId normal = g.map(OpKind::to_like, g.map(OpKind::mul, wide, inverse), x);
  const ValueId scaled = g.map(OpKind::mul, normal, parameter_value(g, m, norm.weight, norm.width));
  const ValueId gate = g.map(OpKind::silu, g.map(OpKind::to_f32, z));
  return g.map(OpKind::to_like, g.map(OpKind::mul, scaled, gate), x);
}

}  // namespace

DeltaNetShape read_delta_net(const ModelConfig& c, std::int64_t hidden) {
  DeltaNetShape s;
  s.hidden = hidden;
  s.value_heads = c.count({"linear_num_value_heads"}, 32);
  s.value_dim = c.count({"linear_value_head_dim"}, 128);
  s.key_heads = c.count({"linear_num_key_heads"}, 16);
  s.key_dim = c.count({"linear_key_head_dim"}, 128);
  s.kernel = c.count({"linear_conv_kernel_dim"}, 4);
  c.require_divisible("linear_num_value_heads", s.value_heads, "linear_num_key_heads", s.key_heads);
  return s;
}

DeltaNet delta_net(ModelBuilder& m, const DeltaNetShape& s) {
  DeltaNet d;
  d.shape = s;
  const std::int64_t mixed = 2 * s.keys() + s.values();
  const std::string at = "linear_attn.";
  d.time_bias = m.tensor(at + "dt_bias", {s.value_heads}, ParameterKind::other);
  d.decay = m.tensor(at + "A_log", {s.value_heads}, ParameterKind::other);
  d.convolution = convolution1d(m, at + "conv1d", mixed, s.kernel, false);
  if (s.joined_projections) {
    d.qkv = m.linear(at + "in_proj_qkvz", s.hidden, mixed + s.values());
    d.b = m.linear(at + "in_proj_ba", s.hidden, 2 * s.value_heads);
    d.norm = m.rms_norm(at + "norm", s.value_dim);
    d.out = m.linear(at + "out_proj", s.values(), s.hidden);
    return d;
  }
  d.norm = m.rms_norm(at + "norm", s.value_dim);
  d.out = m.linear(at + "out_proj", s.values(), s.hidden);
  d.qkv = m.linear(at + "in_proj_qkv", s.hidden, mixed);
  d.z = m.linear(at + "in_proj_z", s.hidden, s.values());
  d.b = m.linear(at + "in_proj_b", s.hidden, s.value_heads);
  d.a = m.linear(at + "in_proj_a", s.hidden, s.value_heads);
  return d;
}

ValueId decay_of(Graph& g, const ModelBuilder& m, const DeltaNet& d, ValueId a) {
  const std::int64_t heads = d.shape.value_heads;
  const ValueId rate = g.map(OpKind::to_f32, parameter_value(g, m, d.decay, heads));
  const ValueId speed = g.map(OpKind::scalar, g.map(OpKind::exponential, rate));
  const ValueId wide = g.map(OpKind::to_f32, a);
  const ValueId biased = g.map(OpKind::add, wide, parameter_value(g, m, d.time_bias, heads));
  return g.map(OpKind::mul, g.map(OpKind::softplus, biased), speed);
}

ValueId apply(Graph& g, const ModelBuilder& m, const DeltaNet& d, ValueId x) {
  const DeltaNetShape& s = d.shape;
  const std::int64_t groups = s.value_heads / s.key_heads;
  ValueId mixed = kNone, z = kNone, b = kNone, a = kNone;
  if (s.joined_projections) {
    // Interleaved by key heads: parts are copied out of it where they are more than a slice.
    const ValueId all = apply(g, d.qkv, x), both = apply(g, d.b, x);
    const auto part = [&](ValueId from, std::int64_t width, bool copies) {
      return copies ? make(g, OpKind::copy, from, width) : slice(g, from, width);
    };
    z = part(all, s.values(), groups > 1);
    b = part(both, s.value_heads, groups > 1);
    a = part(both, s.value_heads, groups > 1);
    mixed = make(g, OpKind::copy, all, 2 * s.keys() + s.values());
  } else {
    mixed = apply(g, d.qkv, x);
    z = apply(g, d.z, x);
    b = apply(g, d.b, x);
    a = apply(g, d.a, x);
  }
  const bool fused = m.options().state_kernels == StateKernels::fused;
  const ValueId convolved = fused ? fused_convolution(g, m, d.convolution, mixed)
                                  : g.map(OpKind::silu, apply(g, d.convolution, mixed));
  const auto heads = [&](std::int64_t width) {
    const ValueId part = slice(g, convolved, width);
    return groups > 1 ? make(g, OpKind::copy, part, width * groups) : part;
  };
  DeltaRule in{.heads = s.value_heads, .key_dim = s.key_dim, .value_dim = s.value_dim};
  in.v = slice(g, convolved, s.values());
  in.beta = g.map(OpKind::sigmoid, b);
  in.decay = decay_of(g, m, d, a);
  in.q = heads(s.keys());
  in.k = heads(s.keys());
  const ValueId out = fused ? fused_delta_rule(g, in)
                            : through_state(g, s, make_chunks(g, s, in, m.options().all_f32));
  const ValueId narrow = g.map(OpKind::to_like, out, in.q);
  return apply(g, d.out, gated_norm(g, m, d.norm, narrow, z));
}

}  // namespace shardplan
