#include "model/architectures/feature_encoder.h"

#include <fmt/format.h>

#include "model/layers/basic.h"

namespace shardplan {
namespace {

std::vector<std::int64_t> numbers(const ModelConfig& c, std::string_view key,
                                  std::vector<std::int64_t> fallback) {
  std::vector<std::int64_t> list = c.is_list(key) ? c.counts(key) : fallback;
  for (const std::int64_t number : list)
    if (number < 1 || number > kLargestDimension)
      c.fail(key, fmt::format("found {}", number), "positive numbers, one for each convolution");
  return list;
}

/// The batch's samples. The class tells them to need a gradient, for the sake of checkpointing:
/// frozen weights, too, leave a graph (Wav2Vec2FeatureEncoder.forward).
ValueId samples(Graph& g, const FeatureEncoder& f) {
  Op op{OpKind::batch};
  op.asked = f.trains;
  return g.op(op, with_per(f.positions(0), 1));
}

/// GroupNorm with a group a channel, or LayerNorm over channels, which are turned behind the
/// positions for it.
ValueId normed(Graph& g, const FeatureEncoder& f, const NormModule& norm, ValueId x) {
  const Extent all = g.value(x).extent;
  Op op{OpKind::layer_norm, {x, kNone, kNone}};
  op.module = norm.module;
  op.weight = norm.weight;
  op.bias = norm.bias;
  op.side = f.each_normed ? with_per(all, 1) : Extent{norm.width, Scale::batch};
  op.transposed = f.each_normed;
  return g.op(op, all);
}

void write_layer(Graph& g, const ModelBuilder& m, const FeatureEncoder& f, std::size_t i) {
  const FeatureEncoder::Layer& l = f.layers[i];
  const StridedConvolution& c = l.convolution;
  const bool first = i == 0, last = i + 1 == f.layers.size();
  // Behind a LayerNorm channels lie behind positions; what comes after the encoder wants them so.
  const ConvolutionCall call{.in = c.in,
                             .out = c.out,
                             .kernel = c.kernel,
                             .positions = f.positions(i + 1),
                             .transposed = f.each_normed && !first,
                             .turned = f.each_normed || last};
  const ValueId x = first ? samples(g, f) : g.chained_input(with_per(f.positions(i), c.in));
  const ValueId y = apply(g, m, c, call, x);
  const bool has_norm = l.norm.module != kNone;
  g.set_output(activate(g, f.activation, has_norm ? normed(g, f, l.norm, y) : y));
}

}  // namespace

Extent FeatureEncoder::positions(std::size_t i) const {
  Extent extent{.per = 1, .scale = Scale::steps};
  for (std::size_t k = layers.size(); k-- > i;) {
    extent.stride = checked_mul(extent.stride, layers[k].stride);
    extent.edge =
        checked_add(checked_mul(extent.edge, layers[k].stride), layers[k].convolution.kernel - 1);
  }
  if (extent.stride == 1 && extent.edge == 0) extent.scale = Scale::tokens;
  return extent;
}

std::string FeatureEncoder::words() const {
  constexpr double kRate = 16.0;  // samples a millisecond
  const Extent all = positions(0);
  return fmt::format(
      "sequence_length counts the encoder's frames, {} samples each ({:g} ms at 16 kHz): n frames "
      "are of {} · n + {} samples, the most that make no more",
      all.stride, static_cast<double>(all.stride) / kRate, all.stride, all.edge);
}

FeatureEncoder feature_encoder(ModelBuilder& m, const std::string& at, const ModelConfig& c) {
  const auto channels = numbers(c, "conv_dim", std::vector<std::int64_t>(7, 512));
  const auto kernels = numbers(c, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  const auto strides = numbers(c, "conv_stride", {5, 2, 2, 2, 2, 2, 2});
  if (channels.empty() || channels.size() != kernels.size() || channels.size() != strides.size())
    c.fail("conv_dim", "not as many numbers as conv_kernel and conv_stride have",
           "one for each convolution");
  const std::string norm = c.text("feat_extract_norm", "group");
  if (norm != "group" && norm != "layer")
    c.fail("feat_extract_norm", "unknown norm '" + norm + "'", "group or layer");
  FeatureEncoder f;
  f.each_normed = norm == "layer";
  f.trains = m.options().images.frozen == FrozenParts::nothing;
  f.activation = read_activation(c, "feat_extract_activation", "gelu");
  const bool bias = c.flag("conv_bias", false);
  const bool trained = m.trains();
  m.set_trains(trained && (f.trains || m.options().counts_only));
  std::int64_t in = 1;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const std::string layer = at + "conv_layers." + std::to_string(i) + ".";
    FeatureEncoder::Layer l;
    l.stride = strides[i];
    l.convolution = strided_convolution(m, layer + "conv", in, channels[i], kernels[i], bias);
    if (f.each_normed || i == 0) l.norm = m.layer_norm(layer + "layer_norm", channels[i]);
    f.layers.push_back(l);
    in = channels[i];
  }
  m.set_trains(trained);
  return f;
}

void write_feature_encoder(ModelBuilder& m, const FeatureEncoder& f) {
  for (std::size_t i = 0; i < f.layers.size(); ++i)
    write_layer(m.begin_segment(fmt::format("feature encoder {}", i), 1, true), m, f, i);
}

}  // namespace shardplan
