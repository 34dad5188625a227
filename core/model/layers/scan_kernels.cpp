#include "model/layers/scan_kernels.h"

#include <fmt/format.h>

#include <utility>

#include "model/layers/basic.h"
#include "model/layers/selective_scan.h"
#include "model/layers/state_space.h"

namespace shardplan {
namespace {

/// Multiprocessors of an H100. mamba_ssm and flash-linear-attention share sums over heads out among
/// as many programs, each with a result of its own.
constexpr std::int64_t kProcessors = 132;

Extent tokens(std::int64_t per) {
  return {per, Scale::tokens};
}

FunctionTensor narrow(Extent extent) {
  return {extent, FunctionType::narrow};
}
FunctionTensor wide(Extent extent) {
  return {extent, FunctionType::wide};
}

FunctionKernels sweep(Extent narrow, Extent wide = {}, std::int64_t calls = 1) {
  return {.kind = FunctionKernelKind::sweep,
          .narrow = narrow,
          .wide = wide,
          .calls = {calls, Scale::one}};
}
FunctionKernels product(Extent m, std::int64_t n, std::int64_t k, Extent batch,
                        std::int64_t calls = 1) {
  return {.kind = FunctionKernelKind::product,
          .calls = {calls, Scale::one},
          .m = m,
          .n = n,
          .k = k,
          .batch = batch};
}

/// The sizes of a scan over chunks.
struct ChunkSizes {
  const StateSpaceShape& s;
  std::int64_t l = 0;
  explicit ChunkSizes(const StateSpaceShape& shape) : s(shape), l(shape.chunk) {}
  Extent of(std::int64_t per, Scale scale = Scale::chunk_tokens) const {
    return {per, scale, 1, l};
  }
  Extent states() const { return of(checked_mul(s.inner, s.state), Scale::chunks); }
  Extent pairs() const { return of(checked_mul(s.groups, l)); }
  Extent chunks_of_heads() const { return of(s.heads, Scale::chunks); }
  Extent chunks_of_groups() const { return of(s.groups, Scale::chunks); }
  static Extent rows(std::int64_t n) { return {n, Scale::one}; }
};

/// _mamba_chunk_scan_combined_fwd and what surrounds it (ops/triton/ssd_combined.py).
FunctionPass scan_forward(const StateSpaceShape& s, bool normed) {
  const ChunkSizes c(s);
  FunctionPass pass;
  pass.working = {narrow(tokens(s.mixed())), wide(c.of(2 * s.heads)), narrow(c.states()),
                  wide(c.pairs()), narrow(tokens(s.inner))};
  const std::int64_t p = s.head_dim(), n = s.state;
  pass.kernels = {
      sweep(tokens(2 * s.mixed())),
      sweep(tokens(s.heads), c.of(2 * s.heads)),
      product(ChunkSizes::rows(p), n, c.l, c.chunks_of_heads()),
      sweep(c.states(), c.states()),
      product(ChunkSizes::rows(c.l), c.l, n, c.chunks_of_groups()),
      product(ChunkSizes::rows(c.l), p, c.l + n, c.chunks_of_heads()),
  };
  if (normed) pass.kernels.push_back(sweep(tokens(3 * s.inner)));
  pass.kernels.push_back(product(tokens(1), s.hidden, s.inner, {1, Scale::one}));
  return pass;
}

/// MambaSplitConv1dScanCombinedFn.backward: the convolution, the states and the normed result are
/// made again.
FunctionPass scan_backward(const StateSpaceShape& s) {
  const ChunkSizes c(s);
  const std::int64_t l = c.l, p = s.head_dim(), n = s.state;
  FunctionPass pass;
  pass.working = {
      narrow(tokens(3 * s.inner)),              // the result again, its gradient, the norm's
      narrow(tokens(2 * s.mixed() + s.heads)),  // the convolution again, its gradient, steps
      wide(c.of(13 * s.heads)),                 // steps, sums and their gradients
      wide(c.states()),                         // states again
      wide(c.states()),                         // and their gradients
      wide(c.pairs()),                          // products of C and B
      wide({checked_mul(kProcessors, checked_mul(l, l)), Scale::one}),       // their gradients
      wide({checked_mul(2 * kProcessors, checked_mul(l, n)), Scale::one})};  // those of B and C
  const Extent heads = c.chunks_of_heads(), groups = c.chunks_of_groups();
  pass.kernels = {
      product(tokens(1), s.inner, s.hidden, {1, Scale::one}, 2),
      sweep(tokens(2 * s.mixed())),
      sweep(tokens(6 * s.inner)),
      sweep(tokens(2 * s.heads), c.of(2 * s.heads), 2),
      product(ChunkSizes::rows(l), l, n, groups, 3),
      product(ChunkSizes::rows(p), n, l, heads, 2),
      sweep(c.states(), c.states(), 2),
      product(ChunkSizes::rows(l), p, l + n, heads),
      product(ChunkSizes::rows(l), n, p, heads, 2),
      product(ChunkSizes::rows(l), l, p, heads, 2),
      sweep({}, c.of(10 * s.heads), 6),
      sweep(tokens(4 * s.mixed())),
  };
  return pass;
}

void join_all(Graph& g, std::initializer_list<ValueId> parts, ValueId whole) {
  for (const ValueId part : parts)
    if (part != kNone) g.join(part, whole);
}

std::int64_t numbers(std::int64_t a, std::int64_t b) {
  return checked_mul(a, b);
}

/// causal_conv1d's own pass over `channels`; the backward one reads what the forward one read and
/// the gradient, and writes another.
FunctionPass convolution_pass(std::int64_t channels, bool backward) {
  FunctionPass pass;
  pass.kernels = {sweep(tokens((backward ? 3 : 2) * channels))};
  return pass;
}

/// A scan of tokens one after the other (csrc/selective_scan): a float2 of each state every 2,048
/// tokens is kept.
Extent intermediates(std::int64_t inner, std::int64_t state) {
  return {checked_mul(2, numbers(inner, state)), Scale::chunks, 1, 2048};
}

}  // namespace

void note_state_kernels(ModelBuilder& m, std::string_view layers, std::string_view libraries) {
  m.facts().has_state = true;
  const bool fused = m.options().state_kernels == StateKernels::fused;
  m.facts().assumed.push_back(
      fused ? fmt::format("{} run by {}, after their source: no run confirms it", layers, libraries)
            : fmt::format("{} in PyTorch's own operations, as where {} are not installed: with "
                          "them they keep less and are faster (state_kernels: fused)",
                          layers, libraries));
}

ValueId fused_scan(Graph& g, const ModelBuilder& m, const StateSpace& mixer, ValueId all,
                   ValueId decay) {
  const StateSpaceShape& s = mixer.shape;
  const std::int64_t weights = numbers(s.inner, s.hidden);
  Function f;
  f.name = "mamba_split_conv1d_scan_combined";
  f.saves = {true, false, false};
  f.kept = {narrow(tokens(s.inner)), {{weights, Scale::one}, FunctionType::cast_weight}};
  if (mixer.norm) f.kept.push_back(wide(tokens(s.norm_groups)));
  f.forward = scan_forward(s, mixer.norm.has_value());
  f.backward = scan_backward(s);
  const auto parameter = [&](ParameterId id, std::int64_t size) {
    return id == kNone ? kNone : parameter_value(g, m, id, size);
  };
  const ValueId weight = parameter(mixer.out.weight, weights);
  const ValueId bias = parameter(mixer.out.bias, s.hidden);
  const ValueId kernel = parameter(mixer.convolution.weight, s.mixed() * s.kernel);
  const ValueId kernel_bias = parameter(mixer.convolution.bias, s.mixed());
  const ValueId steps = parameter(mixer.time_bias, s.heads), skip = parameter(mixer.skip, s.heads);
  const ValueId norm = mixer.norm ? parameter(mixer.norm->weight, s.inner) : kNone;
  const ValueId y = g.op(std::move(f), {all, kNone, kNone}, tokens(s.hidden));
  join_all(g, {decay, weight, bias, kernel, kernel_bias, steps, skip, norm}, y);
  return y;
}

ValueId fused_convolution(Graph& g, const ModelBuilder& m, const Convolution1d& c, ValueId x) {
  Function f;
  f.name = "causal_conv1d_fn";
  f.saves = {true, false, false};
  f.forward = convolution_pass(c.channels, false);
  f.backward = convolution_pass(c.channels, true);
  const ValueId weight = parameter_value(g, m, c.weight, c.channels * c.kernel);
  const ValueId bias = c.bias == kNone ? kNone : parameter_value(g, m, c.bias, c.channels);
  const ValueId y = g.op(std::move(f), {x, kNone, kNone}, g.value(x).extent);
  join_all(g, {weight, bias}, y);
  return y;
}

ValueId fused_mixer(Graph& g, const ModelBuilder& m, const SelectiveScan& mixer, ValueId all,
                    ValueId decay) {
  const SelectiveScanShape& s = mixer.shape;
  const std::int64_t small = s.rank + 2 * s.state;
  const std::int64_t weights =
      numbers(s.inner, s.hidden) + numbers(s.inner, small) + numbers(s.inner, s.rank);
  const Extent one{1, Scale::one};
  Function f;
  f.name = "mamba_inner_fn";
  f.kept = {narrow(tokens(3 * s.inner)),  // both halves in another layout, and the scan's result
            narrow(tokens(small + 2 * s.state)),
            wide(intermediates(s.inner, s.state)),
            {{weights, Scale::one}, FunctionType::cast_weight}};
  f.forward.working = {narrow(tokens(3 * s.inner))};
  f.forward.kernels = {{.kind = FunctionKernelKind::strided, .narrow = tokens(4 * s.inner)},
                       sweep(tokens(2 * s.inner)),
                       product(tokens(1), small, s.inner, one),
                       product(tokens(1), s.inner, s.rank, one),
                       {.kind = FunctionKernelKind::strided,
                        .narrow = tokens(2 * s.state),
                        .calls = {2, Scale::one}},
                       sweep(tokens(5 * s.inner)),
                       product(tokens(1), s.hidden, s.inner, one)};
  f.backward.working = {narrow(tokens(8 * s.inner + 2 * small)),
                        wide({numbers(s.inner, s.state), Scale::one})};
  f.backward.kernels = {sweep(tokens(2 * s.inner)),
                        product(tokens(1), s.inner, s.rank, one, 3),
                        product(tokens(1), s.inner, s.hidden, one, 2),
                        sweep(tokens(9 * s.inner), {}, 1),
                        {.kind = FunctionKernelKind::strided,
                         .narrow = tokens(4 * s.inner),
                         .calls = {3, Scale::one}},
                        product(tokens(1), small, s.inner, one, 2),
                        sweep(tokens(3 * s.inner))};
  const auto parameter = [&](ParameterId id, std::int64_t size) {
    return id == kNone ? kNone : parameter_value(g, m, id, size);
  };
  const ValueId kernel = parameter(mixer.convolution.weight, s.inner * s.kernel);
  const ValueId kernel_bias = parameter(mixer.convolution.bias, s.inner);
  const ValueId x_weight = parameter(mixer.x.weight, numbers(s.inner, small));
  const ValueId dt_weight = parameter(mixer.dt.weight, numbers(s.inner, s.rank));
  const ValueId dt_bias = g.map(OpKind::to_f32, parameter(mixer.dt.bias, s.inner));
  const ValueId skip = g.map(OpKind::to_f32, parameter(mixer.skip, s.inner));
  const ValueId out = parameter(mixer.out.weight, numbers(s.inner, s.hidden));
  const ValueId out_bias = parameter(mixer.out.bias, s.hidden);
  const ValueId y = g.op(std::move(f), {all, kNone, kNone}, tokens(s.hidden));
  join_all(g, {decay, kernel, kernel_bias, x_weight, dt_weight, dt_bias, skip, out, out_bias}, y);
  return y;
}

ValueId fused_selective_scan(Graph& g, const ModelBuilder& m, const SelectiveScan& mixer,
                             std::array<ValueId, 3> in, ValueId gate, ValueId decay) {
  const SelectiveScanShape& s = mixer.shape;
  Function f;
  f.name = "selective_scan_fn";
  f.saves = {false, true, false};  // u and the gate are kept in another layout, as are B and C
  f.kept = {narrow(tokens(3 * s.inner + 2 * s.state)), wide(intermediates(s.inner, s.state))};
  f.forward.kernels = {{.kind = FunctionKernelKind::strided,
                        .narrow = tokens(2 * s.inner),
                        .calls = {2, Scale::one}},
                       {.kind = FunctionKernelKind::strided,
                        .narrow = tokens(2 * s.state),
                        .calls = {2, Scale::one}},
                       sweep(tokens(5 * s.inner))};
  f.backward.working = {narrow(tokens(2 * s.inner)), wide({numbers(s.inner, s.state), Scale::one}),
                        wide(tokens(2 * s.state))};
  f.backward.kernels = {sweep(tokens(9 * s.inner)),
                        {.kind = FunctionKernelKind::strided,
                         .narrow = tokens(2 * s.inner),
                         .calls = {3, Scale::one}}};
  const ValueId skip = g.map(OpKind::to_f32, parameter_value(g, m, mixer.skip, s.inner));
  const ValueId bias = g.map(OpKind::to_f32, parameter_value(g, m, mixer.dt.bias, s.inner));
  const ValueId y = g.op(std::move(f), in, tokens(s.inner));
  join_all(g, {gate, decay, skip, bias}, y);
  return y;
}

ValueId fused_unit_length(Graph& g, std::int64_t heads, ValueId x) {
  const Extent all = g.value(x).extent;
  Function f;
  f.name = "l2norm";
  f.saves = {true, false, false};
  f.kept = {wide(tokens(heads))};
  f.forward.kernels = {sweep(tokens(2 * all.per))};
  f.backward.kernels = {sweep(tokens(3 * all.per))};
  return g.op(std::move(f), {x, kNone, kNone}, all);
}

ValueId fused_delta_rule(Graph& g, const DeltaRule& r) {
  constexpr std::int64_t kChunk = 64;
  const std::int64_t keys = numbers(r.heads, r.key_dim), values = numbers(r.heads, r.value_dim);
  const auto of = [&](std::int64_t per, Scale scale = Scale::chunk_tokens) {
    return Extent{per, scale, 1, kChunk};
  };
  const Extent states = of(numbers(keys, r.value_dim), Scale::chunks);
  const Extent heads = of(r.heads, Scale::chunks), rows{kChunk, Scale::one};
  Function f;
  f.name = "chunk_gated_delta_rule";
  // Normed queries and keys, values laid out by heads, the solved system; decays and statistics.
  f.kept = {narrow(tokens(2 * keys + values)), narrow(of(r.heads * kChunk)),
            wide(tokens(3 * r.heads)), narrow(tokens(r.heads))};
  f.forward.working = {narrow(tokens(2 * keys)), narrow(of(keys + 2 * values)), narrow(states)};
  f.forward.kernels = {sweep(tokens(2 * keys), {}, 2),
                       sweep({}, tokens(2 * r.heads)),
                       product(rows, kChunk, r.key_dim, heads, 2),
                       product(rows, r.key_dim + r.value_dim, kChunk, heads),
                       product(rows, r.value_dim, 2 * r.key_dim, heads),
                       product(rows, r.value_dim, r.key_dim + kChunk, heads)};
  f.backward.working = {narrow(of(keys + 2 * values)), narrow(states), narrow(states),
                        narrow(of(4 * keys + 2 * values)), wide(of(6 * r.heads))};
  f.backward.kernels = {product(rows, r.key_dim + r.value_dim, kChunk, heads),
                        product(rows, r.value_dim, 2 * r.key_dim, heads),
                        product(rows, r.value_dim, kChunk, heads, 2),
                        product(rows, r.value_dim, 3 * r.key_dim, heads),
                        product(rows, r.key_dim, 3 * r.value_dim, heads),
                        product(rows, r.key_dim, 2 * kChunk, heads),
                        product(rows, kChunk, r.key_dim + r.value_dim, heads, 2),
                        sweep(tokens(3 * keys), {}, 3),
                        sweep({}, tokens(2 * r.heads), 2)};
  const ValueId y = g.op(std::move(f), {r.q, r.k, r.v}, tokens(values));
  join_all(g, {r.beta, r.decay}, y);
  return y;
}

}  // namespace shardplan
