#include "model/layers/convolution.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {

Convolution1d convolution1d(ModelBuilder& m, std::string_view name, std::int64_t channels,
                            std::int64_t kernel, bool bias) {
  Convolution1d c;
  c.channels = channels;
  c.kernel = kernel;
  c.weight = m.tensor(std::string(name) + ".weight", {channels, 1, kernel}, ParameterKind::other);
  if (bias) c.bias = m.tensor(std::string(name) + ".bias", {channels}, ParameterKind::bias);
  c.module = m.owner(c.weight);
  return c;
}

ValueId apply(Graph& g, const Convolution1d& c, ValueId x) {
  const Extent all = g.value(x).extent;
  Op op{OpKind::linear, {x, kNone, kNone}};
  op.module = c.module;
  op.weight = c.weight;
  op.bias = c.bias;
  op.work = {checked_mul(c.channels, c.kernel), all.scale};
  op.convolves = true;
  return g.op(op, all);
}

TimeConvolution time_convolution(ModelBuilder& m, const std::string& name, std::int64_t in,
                                 std::int64_t out) {
  TimeConvolution c;
  c.weight = m.tensor(name + ".weight", {out, in, 3}, ParameterKind::linear);
  c.bias = m.tensor(name + ".bias", {out}, ParameterKind::bias);
  c.module = m.owner(c.weight);
  c.out = out;
  c.width = 3 * in;
  return c;
}

ValueId convolve(Graph& g, const TimeConvolution& c, std::int64_t rows, Scale scale, ValueId x) {
  Op op{OpKind::linear, {x, kNone, kNone}};
  op.module = c.module;
  op.weight = c.weight;
  op.bias = c.bias;
  op.work = {checked_mul(rows * c.out, c.width), scale};
  op.convolves = true;
  return g.map(OpKind::gelu, g.op(op, {rows * c.out, scale}));
}

bool convolves_tokens(const Model& model) {
  return std::any_of(model.parameters.begin(), model.parameters.end(), [](const Parameter& p) {
    return p.shape.size() == 3 && p.shape[1] == 1 && p.kind == ParameterKind::other;
  });
}

namespace {

[[noreturn]] void refuse(const ModelConfig& config, Said message, Said expected) {
  throw InputError({.file = config.file(),
                    .key = "model_type",
                    .message = std::move(message),
                    .expected = std::move(expected)});
}

}  // namespace

void require_no_generation(const ModelConfig& config, const BuildOptions& options,
                           std::string_view layers) {
  if (options.counts_only) return;
  if (options.cached || options.scalar_head)
    refuse(config, say("{} are described for training alone", layers),
           "workload.kind train, or a network without them");
}

void require_training(const ModelConfig& config, const BuildOptions& options,
                      std::string_view layers) {
  require_no_generation(config, options, layers);
  if (!options.counts_only && options.kernels != KernelSet::eager)
    refuse(config, say("{} are described as transformers runs them", layers),
           "framework single, ddp, fsdp1, fsdp2 or deepspeed");
}

}  // namespace shardplan
