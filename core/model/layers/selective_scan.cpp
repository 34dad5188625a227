#include "model/layers/selective_scan.h"

#include <string>
#include <utility>

#include "model/layers/basic.h"
#include "model/layers/scan_kernels.h"

namespace shardplan {
namespace {

/// A linear over what lies column by column: rows are copied together, but for a batch of one.
ValueId over_columns(Graph& g, const LinearModule& m, ValueId x) {
  return apply(g, m, g.map(OpKind::fold_heads, x));
}

/// The loop over tokens: state = decay·state + added, and the product of each with C. Autograd
/// keeps every state, and its copy in the type of C. The gradient of each token's slice of decays
/// and of what was added is written into zeros as large as all of them
/// (derivatives.yaml, select_backward), and added to the others'.
Function loop_over_tokens(const SelectiveScanShape& s) {
  const std::int64_t states = checked_mul(s.inner, s.state);
  const Extent all{states, Scale::tokens}, each{states, Scale::batch};
  const Extent results{s.inner, Scale::tokens};
  const Extent steps{1, Scale::sequence};
  Function f;
  f.name = "a loop over tokens";
  f.saves = {true, false, true};
  f.kept = {{all, FunctionType::wide}, {all, FunctionType::copied}};
  f.forward.working = {{results, FunctionType::narrow}};
  Extent twice = each, thrice = each;
  twice.per *= 2;
  thrice.per *= 3;
  f.forward.kernels = {
      {.kind = FunctionKernelKind::strided, .wide = thrice, .calls = steps},
      {.kind = FunctionKernelKind::strided, .wide = thrice, .calls = steps},
      {.kind = FunctionKernelKind::sweep, .narrow = each, .wide = each, .calls = steps},
      {.kind = FunctionKernelKind::sweep, .narrow = each, .calls = steps},
      {.kind = FunctionKernelKind::call, .calls = {5, Scale::sequence}},
      {.kind = FunctionKernelKind::strided, .narrow = {2 * s.inner, Scale::tokens}}};
  f.backward.working = {{all, FunctionType::wide}, {twice, FunctionType::wide}};
  f.backward.kernels = {
      {.kind = FunctionKernelKind::strided, .narrow = {2 * s.inner, Scale::tokens}},
      {.kind = FunctionKernelKind::strided, .narrow = thrice, .calls = {2, Scale::sequence}},
      {.kind = FunctionKernelKind::strided, .narrow = each, .wide = each, .calls = steps},
      {.kind = FunctionKernelKind::sweep, .wide = thrice, .calls = {3, Scale::sequence}},
      // Zeros, one slice, and the sum: of both tensors.
      {.kind = FunctionKernelKind::sweep, .wide = all, .calls = {2, Scale::sequence}},
      {.kind = FunctionKernelKind::strided, .wide = twice, .calls = {2, Scale::sequence}},
      {.kind = FunctionKernelKind::sweep,
       .wide = {3 * states, Scale::tokens},
       .calls = {2, Scale::sequence}},
      {.kind = FunctionKernelKind::strided,
       .narrow = {4 * s.state, Scale::tokens},
       .calls = {2, Scale::sequence}}};
  return f;
}

/// What one projection makes of each token: the time steps of all channels, B and C.
struct TokenParts {
  ValueId steps = kNone, b = kNone, c = kNone;
};

TokenParts token_parts(Graph& g, const SelectiveScan& mixer, ValueId convolved) {
  const SelectiveScanShape& s = mixer.shape;
  const ValueId all = over_columns(g, mixer.x, convolved);
  const auto part = [&](std::int64_t width, const std::optional<NormModule>& norm) {
    const ValueId x = slice(g, all, width);
    return norm ? rms_norm(g, *norm, x) : x;
  };
  TokenParts p;
  const ValueId low = part(s.rank, mixer.dt_norm);
  p.b = part(s.state, mixer.b_norm);
  p.c = part(s.state, mixer.c_norm);
  LinearModule weight_alone = mixer.dt;
  weight_alone.bias = kNone;
  p.steps = g.map(OpKind::copy, apply(g, weight_alone, low));
  return p;
}

/// mamba_selective_scan, without the product with silu of the gate.
ValueId scanned(Graph& g, const ModelBuilder& m, const SelectiveScan& mixer, ValueId u,
                const TokenParts& p, ValueId decay) {
  const SelectiveScanShape& s = mixer.shape;
  const Extent states{checked_mul(s.inner, s.state), Scale::tokens};
  const auto product = [&](ValueId a, ValueId b) {
    return g.op({OpKind::mul, {a, b, kNone}}, states);
  };
  const ValueId skip = g.map(OpKind::to_f32, parameter_value(g, m, mixer.skip, s.inner));
  const ValueId bias =
      g.map(OpKind::to_like, g.map(OpKind::to_f32, parameter_value(g, m, mixer.dt.bias, s.inner)),
            p.steps);
  const ValueId dt = g.map(OpKind::softplus, g.map(OpKind::add, p.steps, bias));
  const ValueId decays = g.map(OpKind::exponential, product(decay, dt));
  const ValueId inputs = product(dt, g.map(OpKind::to_f32, p.b));
  const ValueId added = product(inputs, g.map(OpKind::to_f32, u));
  const ValueId y = g.op(loop_over_tokens(s), {decays, added, p.c}, {s.inner, Scale::tokens});
  for (const ValueId v : {dt, decays, inputs, added}) g.hold(v, y);
  return g.map(OpKind::add, y, g.map(OpKind::mul, u, skip));
}

}  // namespace

std::int64_t time_step_rank(const ModelConfig& c, std::string_view key, std::int64_t hidden,
                            std::int64_t fallback) {
  const bool automatic = !c.has(key) || c.is_text(key);
  return automatic ? ceil_div(hidden, 16) : c.count({key}, fallback);
}

SelectiveScan selective_scan(ModelBuilder& m, const SelectiveScanShape& s) {
  SelectiveScan mixer;
  mixer.shape = s;
  const std::string at = std::string(s.name) + ".";
  mixer.decay = m.tensor(at + "A_log", {s.inner, s.state}, ParameterKind::other);
  mixer.skip = m.tensor(at + "D", {s.inner}, ParameterKind::other);
  mixer.convolution = convolution1d(m, at + "conv1d", s.inner, s.kernel, s.conv_bias);
  mixer.in = m.linear(at + "in_proj", s.hidden, 2 * s.inner, s.bias);
  mixer.x = m.linear(at + "x_proj", s.inner, s.rank + 2 * s.state);
  mixer.dt = m.linear(at + "dt_proj", s.rank, s.inner, true);
  mixer.out = m.linear(at + "out_proj", s.inner, s.hidden, s.bias);
  if (!s.norms) return mixer;
  mixer.dt_norm = m.rms_norm(at + "dt_layernorm", s.rank);
  mixer.b_norm = m.rms_norm(at + "b_layernorm", s.state);
  mixer.c_norm = m.rms_norm(at + "c_layernorm", s.state);
  return mixer;
}

ValueId apply(Graph& g, const ModelBuilder& m, const SelectiveScan& mixer, ValueId x) {
  const SelectiveScanShape& s = mixer.shape;
  const bool fused = m.options().state_kernels == StateKernels::fused;
  const ValueId all = apply(g, mixer.in, x);
  const std::int64_t states = checked_mul(s.inner, s.state);
  const ValueId rate = g.map(OpKind::to_f32, parameter_value(g, m, mixer.decay, states));
  const ValueId decay = g.map(OpKind::scalar, g.map(OpKind::exponential, rate));
  if (fused && !s.norms) return fused_mixer(g, m, mixer, all, decay);
  const ValueId before = slice(g, all, s.inner), gate = slice(g, all, s.inner);
  const ValueId convolved = fused ? fused_convolution(g, m, mixer.convolution, before)
                                  : g.map(OpKind::silu, apply(g, mixer.convolution, before));
  const TokenParts p = token_parts(g, mixer, convolved);
  if (fused) {
    const ValueId both = g.op({OpKind::cat, {p.b, p.c, kNone}}, {2 * s.state, Scale::tokens});
    return over_columns(g, mixer.out,
                        fused_selective_scan(g, m, mixer, {convolved, p.steps, both}, gate, decay));
  }
  const ValueId y = scanned(g, m, mixer, convolved, p, decay);
  const ValueId gated = g.map(OpKind::mul, y, g.map(OpKind::silu, gate));
  return over_columns(g, mixer.out, g.map(OpKind::to_like, gated, x));
}

}  // namespace shardplan
