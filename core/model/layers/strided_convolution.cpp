#include "model/layers/strided_convolution.h"

#include "model/layers/basic.h"

namespace shardplan {
namespace {

FunctionTensor in_type(Extent extent) {
  return {extent, FunctionType::narrow};
}

std::int64_t weights_of(const ConvolutionCall& c) {
  return checked_mul(c.out, checked_mul(c.in / c.groups, c.kernel));
}

/// Products over the positions of the result; channels are moved behind them and back, in sweeps
/// over input and result.
std::vector<FunctionKernels> products_of(const ConvolutionCall& c, Extent from, Extent to,
                                         std::int64_t products) {
  const auto sweep = [&](Extent extent) {
    return FunctionKernels{.kind = FunctionKernelKind::strided,
                           .narrow = with_per(extent, checked_mul(2, extent.per)),
                           .calls = {products, Scale::one}};
  };
  return {{.kind = FunctionKernelKind::product,
           .calls = {products, Scale::one},
           .m = with_per(to, 1),
           .n = c.out / c.groups,
           .k = checked_mul(c.in / c.groups, c.kernel),
           .batch = {c.groups, Scale::one}},
          sweep(from),
          sweep(to)};
}

/// Tensor cores read channels behind positions: the workspace has input, result and weight so, in
/// 16 bits with at least eight channels. Fewer channels in fp32 go to a kernel without a workspace.
/// In groups it takes less of the input and result and more of the weight: a bound of what was
/// measured.
std::vector<FunctionTensor> cudnn_workspace(const ConvolutionCall& c, Extent from, Extent to,
                                            bool backward) {
  constexpr std::int64_t kLanes = 8;
  const std::int64_t weights = weights_of(c);
  if (c.groups > 1) {
    const std::int64_t more = backward ? 3 : 1;
    return {in_type(with_per(from, checked_mul(backward ? 2 : 1, from.per))),
            in_type({checked_mul(more, weights), Scale::one})};
  }
  if (c.in >= kLanes) return {in_type(from), in_type(to), in_type({weights, Scale::one})};
  const std::int64_t lanes = checked_mul(kLanes, checked_mul(c.out, c.kernel));
  return {{with_per(from, kLanes), FunctionType::copied},
          {to, FunctionType::copied},
          {{lanes, Scale::one}, FunctionType::copied}};
}

ValueId convolved(Graph& g, const ConvolutionCall& c, ValueId weight, bool is_parameter,
                  ValueId bias, ValueId x) {
  const Extent from = g.value(x).extent, to = with_per(c.positions, c.out);
  Function f;
  f.name = "convolution";
  f.saves = {true, true, false};
  if (is_parameter) f.kept = {{{weights_of(c), Scale::one}, FunctionType::cast_weight}};
  f.forward.workspace = cudnn_workspace(c, from, to, false);
  f.backward.workspace = cudnn_workspace(c, from, to, true);
  if (c.transposed) {
    f.forward.working.push_back(in_type(from));
    f.backward.working.push_back(in_type(from));
  }
  if (c.turned) f.backward.working.push_back(in_type(to));
  f.forward.kernels = products_of(c, from, to, 1);
  f.backward.kernels = products_of(c, from, to, 2);
  const ValueId y = g.op(std::move(f), {weight, x, kNone}, to);
  if (bias != kNone) g.join(bias, y);
  return y;
}

/// torch._weight_norm: one kernel, which keeps the norm of each column in fp32.
ValueId weight_of(Graph& g, const ModelBuilder& m, const NormedConvolution& c,
                  std::int64_t weights) {
  const Extent all{weights, Scale::one}, columns{c.kernel, Scale::one};
  const ValueId sizes = parameter_value(g, m, c.sizes, c.kernel);
  const ValueId directions = parameter_value(g, m, c.directions, weights);
  Function f;
  f.name = "weight norm";
  f.saves = {true, true, false};
  f.kept = {{columns, FunctionType::wide}};
  f.forward.kernels = {{.kind = FunctionKernelKind::reduction, .narrow = all},
                       {.kind = FunctionKernelKind::sweep, .narrow = with_per(all, 2 * weights)}};
  f.backward.kernels = {
      {.kind = FunctionKernelKind::reduction, .narrow = with_per(all, 2 * weights)},
      {.kind = FunctionKernelKind::sweep, .narrow = with_per(all, 3 * weights)}};
  return g.op(std::move(f), {sizes, directions, kNone}, all);
}

}  // namespace

StridedConvolution strided_convolution(ModelBuilder& m, const std::string& name, std::int64_t in,
                                       std::int64_t out, std::int64_t kernel, bool bias) {
  StridedConvolution c{.in = in, .out = out, .kernel = kernel};
  c.weight = m.tensor(name + ".weight", {out, in, kernel}, ParameterKind::other);
  if (bias) c.bias = m.tensor(name + ".bias", {out}, ParameterKind::bias);
  return c;
}

ValueId apply(Graph& g, const ModelBuilder& m, const StridedConvolution& c,
              const ConvolutionCall& call, ValueId x) {
  const ValueId weight = parameter_value(g, m, c.weight, weights_of(call));
  const ValueId bias = c.bias == kNone ? kNone : parameter_value(g, m, c.bias, c.out);
  return convolved(g, call, weight, true, bias, g.map(OpKind::to_compute, x));
}

NormedConvolution normed_convolution(ModelBuilder& m, const std::string& name,
                                     std::int64_t channels, std::int64_t kernel,
                                     std::int64_t groups) {
  NormedConvolution c{.channels = channels, .kernel = kernel, .groups = groups};
  c.bias = m.tensor(name + ".bias", {channels}, ParameterKind::bias);
  const std::string weight = name + ".parametrizations.weight.original";
  c.sizes = m.tensor(weight + "0", {1, 1, kernel}, ParameterKind::other);
  c.directions =
      m.tensor(weight + "1", {channels, channels / groups, kernel}, ParameterKind::other);
  return c;
}

ValueId apply(Graph& g, const ModelBuilder& m, const NormedConvolution& c, ValueId x) {
  const Extent tokens = g.value(x).extent;
  const bool even = c.kernel % 2 == 0;  // which makes one position too many
  ConvolutionCall call{.in = c.channels,
                       .out = c.channels,
                       .kernel = c.kernel,
                       .groups = c.groups,
                       .positions = tokens,
                       .transposed = true,
                       .turned = true};
  if (even) call.positions = {.scale = Scale::steps, .edge = 1};
  const ValueId weight = g.map(OpKind::to_compute, weight_of(g, m, c, weights_of(call)));
  const ValueId bias = parameter_value(g, m, c.bias, c.channels);
  const ValueId y = convolved(g, call, weight, false, bias, g.map(OpKind::to_compute, x));
  return even ? g.view(y, tokens) : y;
}

}  // namespace shardplan
