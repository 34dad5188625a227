#include "model/layers/state_space.h"

#include <string>

#include "model/layers/basic.h"
#include "model/layers/scan_kernels.h"

namespace shardplan {
namespace {

/// x, dt, A, B and C of the scan, and the gate of its result: views of what was projected.
struct ScanInputs {
  ValueId x = kNone, dt = kNone, b = kNone, c = kNone, gate = kNone, decay = kNone;
};

/// Operations over the chunks of a sequence, in fp32.
class ChunkedScan {
 public:
  ChunkedScan(Graph& g, const ModelBuilder& m, const StateSpace& mixer)
      : g_(g), m_(m), mixer_(mixer), s_(mixer.shape) {}
  ValueId run(const ScanInputs& in);

 private:
  /// What is discretized, in chunks.
  struct Chunked {
    ValueId x = kNone, decay = kNone, b = kNone, c = kNone, sum = kNone;
  };

  Extent of(std::int64_t per, Scale scale = Scale::chunk_tokens) const {
    return {per, scale, 1, s_.chunk};
  }
  ValueId make(OpKind kind, ValueId x, Extent extent, ValueId other = kNone) {
    return g_.op({kind, {x, other, kNone}}, extent);
  }
  /// F.pad, which copies where there is nothing to pad too.
  ValueId padded(ValueId x) { return make(OpKind::copy, x, of(g_.value(x).extent.per)); }
  ValueId summed(ValueId a, ValueId b, Extent whole, Extent result, const WrittenOut& how) {
    const auto part = [&](OpKind kind, ValueId first, ValueId second, Extent extent) {
      Op op{kind, {first, second, kNone}};
      op.contraction = how;
      return g_.op(op, extent);
    };
    return part(OpKind::sum, part(OpKind::mul, a, b, whole), kNone, result);
  }
  /// Σ a·b over a dimension of `width`: the product is made whole.
  ValueId contracted(ValueId a, ValueId b, Extent result, std::int64_t width,
                     const WrittenOut& how) {
    return summed(a, b, with_per(result, checked_mul(result.per, width)), result, how);
  }
  ValueId segment_sum(ValueId x, Extent square, std::int64_t side);
  Chunked discretize(const ScanInputs& in, ValueId dt);
  ValueId within_chunks(const Chunked& c);
  ValueId states_before_chunks(const Chunked& c);
  ValueId through_states(const Chunked& c, ValueId states);
  void name(ValueId x) { names_.push_back(x); }

  Graph& g_;
  const ModelBuilder& m_;
  const StateSpace& mixer_;
  const StateSpaceShape& s_;
  std::vector<ValueId> names_;  ///< of the function's frame
};

/// exp of the sums between any two places of a chunk, 0 above the diagonal: two masks are kept.
ValueId ChunkedScan::segment_sum(ValueId x, Extent square, std::int64_t side) {
  const auto masked = [&](ValueId v) {
    Op op{OpKind::masked, {v, kNone, kNone}};
    op.side = {checked_mul(side, side), Scale::one};
    return g_.op(op, square);
  };
  const ValueId pairs = masked(g_.view(x, square));
  const ValueId sums = g_.map(OpKind::scalar, pairs);  // cumsum
  return g_.map(OpKind::exponential, masked(sums));
}

ChunkedScan::Chunked ChunkedScan::discretize(const ScanInputs& in, ValueId dt) {
  const auto wide = [&](ValueId v) { return g_.map(OpKind::to_f32, v); };
  const auto repeated = [&](ValueId v) {
    return make(OpKind::copy, wide(v), {s_.heads * s_.state, Scale::tokens});
  };
  Chunked c;
  const ValueId x = wide(in.x), b = repeated(in.b), all_c = repeated(in.c);
  const ValueId skip = parameter_value(g_, m_, mixer_.skip, s_.heads);
  name(g_.map(OpKind::mul, padded(x), skip));
  const ValueId scaled = g_.map(OpKind::mul, x, wide(dt));
  const ValueId decay = g_.map(OpKind::mul, wide(dt), in.decay);
  c.x = padded(scaled);
  c.decay = padded(decay);
  c.b = padded(b);
  c.c = padded(all_c);
  c.sum = g_.map(OpKind::scalar, c.decay);  // cumsum
  for (const ValueId v : {dt, c.x, c.decay, c.b, c.c, c.sum}) name(v);
  return c;
}

/// What tokens of a chunk make of each other.
ValueId ChunkedScan::within_chunks(const Chunked& c) {
  const Extent square = of(s_.heads * s_.chunk);
  const ValueId decays = segment_sum(c.decay, square, s_.chunk);
  const ValueId products = contracted(c.c, c.b, square, s_.state, {.row = s_.state});
  const ValueId weights = contracted(products, decays, square, 1, {});
  // x is what a convolution over tokens made: a head's column of all tokens lies together.
  const ValueId y = contracted(weights, c.x, of(s_.inner), s_.chunk,
                               {.gradients = {s_.head_dim(), 0}, .turned = true});
  for (const ValueId v : {decays, products, weights, y}) name(v);
  return y;
}

/// The state before each chunk: of every pair of chunks what the one leaves of the other.
ValueId ChunkedScan::states_before_chunks(const Chunked& c) {
  const std::int64_t state = checked_mul(s_.inner, s_.state);
  const ValueId left = g_.map(OpKind::exponential, g_.map(OpKind::scalar, c.sum));
  const ValueId keys = g_.map(OpKind::mul, c.b, left);
  const ValueId added =
      contracted(keys, c.x, of(state, Scale::chunks), s_.chunk, {.gradients = {0, s_.state}});
  const ValueId first = g_.op({OpKind::copy, {added, kNone, kNone}}, {state, Scale::batch});
  const ValueId states = make(OpKind::cat, first, of(state, Scale::chunk_ends), added);
  const ValueId ends = make(OpKind::copy, c.sum, of(s_.heads, Scale::chunk_ends));
  const ValueId decays = segment_sum(ends, of(s_.heads, Scale::chunk_pairs), 1);
  const ValueId products = make(OpKind::mul, decays, of(state, Scale::chunk_pairs), states);
  const ValueId result = make(OpKind::sum, products, of(state, Scale::chunk_ends));
  for (const ValueId v : {left, keys, first, decays, result}) name(v);
  return result;
}

ValueId ChunkedScan::through_states(const Chunked& c, ValueId states) {
  const ValueId decays = g_.map(OpKind::exponential, c.sum);
  const ValueId before = g_.view(states, of(g_.value(states).extent.per, Scale::chunks));
  // This product has a name: it lives until the function returns.
  const WrittenOut how{.row = s_.state};
  Op multiply{OpKind::mul, {c.c, before, kNone}}, add{OpKind::sum};
  multiply.contraction = add.contraction = how;
  const ValueId products = g_.op(multiply, of(checked_mul(s_.inner, s_.state)));
  add.in[0] = products;
  const ValueId y = g_.map(OpKind::mul, g_.op(add, of(s_.inner)), decays);
  for (const ValueId v : {decays, products, y}) name(v);
  return y;
}

ValueId ChunkedScan::run(const ScanInputs& in) {
  const ValueId bias =
      g_.map(OpKind::to_like, parameter_value(g_, m_, mixer_.time_bias, s_.heads), in.dt);
  const ValueId step = g_.map(OpKind::softplus, g_.map(OpKind::add, in.dt, bias));
  const Chunked c = discretize(in, g_.map(OpKind::clamp, step));
  const ValueId skipped = names_.front();
  const ValueId inside = within_chunks(c);
  const ValueId outside = through_states(c, states_before_chunks(c));
  const ValueId both = g_.map(OpKind::add, inside, outside);
  const ValueId y = g_.map(OpKind::add, both, skipped);
  for (const ValueId v : names_) g_.hold(v, y);
  return g_.view(y, {s_.inner, Scale::tokens});
}

/// An RMS norm over groups of columns, and silu of the gate before or behind it.
ValueId gated_norm(Graph& g, const ModelBuilder& m, const StateSpace& mixer, ValueId y,
                   ValueId gate) {
  const StateSpaceShape& s = mixer.shape;
  if (!mixer.norm) return g.map(OpKind::mul, y, g.map(OpKind::silu, gate));
  const auto gated = [&](ValueId v) {
    return g.map(OpKind::mul, v, g.map(OpKind::silu, g.map(OpKind::to_f32, gate)));
  };
  ValueId wide = g.map(OpKind::to_f32, y);
  if (!s.gate_last) wide = gated(wide);
  const Extent groups{s.norm_groups, Scale::tokens};
  const ValueId variance = g.op({OpKind::mean, {g.map(OpKind::power, wide), kNone, kNone}}, groups);
  const ValueId inverse = g.map(OpKind::rsqrt, g.map(OpKind::scalar, variance));
  ValueId normal = g.map(OpKind::mul, wide, inverse);
  const ValueId weight = parameter_value(g, m, mixer.norm->weight, s.inner);
  if (s.norm == GatedNorm::gate_first) normal = g.map(OpKind::to_like, normal, y);
  const ValueId scaled = g.map(OpKind::mul, normal, weight);
  const ValueId result = s.gate_last ? gated(scaled) : scaled;
  return s.norm == GatedNorm::wide ? g.map(OpKind::to_like, result, y) : result;
}

/// A buffer in the parameters' type that multiplies: it needs no gradient.
ValueId times_buffer(Graph& g, const ModelBuilder& m, ParameterId like, ValueId x) {
  Op buffer{OpKind::parameter};
  buffer.module = m.owner(like);
  buffer.weight = like;
  buffer.detached = true;
  return g.map(OpKind::mul, x, g.op(buffer, {per(g, x), Scale::one}));
}

}  // namespace

StateSpace state_space(ModelBuilder& m, const ModelConfig& config, const StateSpaceShape& s) {
  if (!m.options().counts_only && s.inner % s.heads != 0)
    config.fail("model_type",
                "the heads of the state space do not divide its columns: nothing could compute it",
                "a multiple of the heads");
  StateSpace mixer;
  mixer.shape = s;
  const std::string at = std::string(s.name) + ".";
  mixer.time_bias = m.tensor(at + "dt_bias", {s.heads}, ParameterKind::other);
  mixer.decay = m.tensor(at + "A_log", {s.heads}, ParameterKind::other);
  mixer.skip = m.tensor(at + "D", {s.heads}, ParameterKind::other);
  mixer.convolution = convolution1d(m, at + "conv1d", s.mixed(), s.kernel, s.conv_bias);
  mixer.in = m.linear(at + "in_proj", s.hidden, s.projected(), s.in_bias);
  if (s.norm != GatedNorm::none) mixer.norm = m.rms_norm(at + "norm", s.inner);
  mixer.out = m.linear(at + "out_proj", s.inner, s.hidden, s.out_bias);
  return mixer;
}

ValueId apply(Graph& g, const ModelBuilder& m, const StateSpace& mixer, ValueId x) {
  const StateSpaceShape& s = mixer.shape;
  const ValueId taken = s.multipliers ? g.map(OpKind::scalar, x) : x;
  ValueId all = apply(g, mixer.in, taken);
  if (s.multipliers) all = times_buffer(g, m, mixer.time_bias, all);
  const ValueId rate = g.map(OpKind::to_f32, parameter_value(g, m, mixer.decay, s.heads));
  ScanInputs in;
  in.decay = g.map(OpKind::scalar, g.map(OpKind::exponential, rate));
  if (m.options().state_kernels == StateKernels::fused)
    return fused_scan(g, m, mixer, all, in.decay);
  in.gate = slice(g, all, s.inner);
  in.dt = slice(g, all, s.heads);
  const ValueId convolved =
      g.map(OpKind::silu, apply(g, mixer.convolution, slice(g, all, s.mixed())));
  in.x = slice(g, convolved, s.inner);
  in.b = slice(g, convolved, s.keys());
  in.c = slice(g, convolved, s.keys());
  const ValueId y = ChunkedScan(g, m, mixer).run(in);
  const ValueId normal = gated_norm(g, m, mixer, y, in.gate);
  return apply(g, mixer.out, g.map(OpKind::to_like, normal, x));
}

}  // namespace shardplan
