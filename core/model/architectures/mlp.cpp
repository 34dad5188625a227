#include <fmt/format.h>

#include "model/architectures/plain.h"
#include "model/config.h"
#include "model/layers/heads.h"

namespace shardplan {
namespace {

/// More layers than any network has: each is lowered by itself.
constexpr std::size_t kMostLayers = 4096;

}  // namespace

Model perceptron(const std::vector<std::int64_t>& widths, const BuildOptions& options,
                 const std::string& file, const std::string& key) {
  if (widths.size() < 2)
    throw InputError({.file = file,
                      .key = key,
                      .message = fmt::format("{} widths", widths.size()),
                      .expected = "at least two: the inputs' and the outputs'"});
  if (widths.size() - 1 > kMostLayers)
    throw InputError({.file = file,
                      .key = key,
                      .message = fmt::format("{} layers", widths.size() - 1),
                      .expected = fmt::format("at most {}", kMostLayers)});
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (widths[i] < 1 || widths[i] > kLargestDimension)
      throw InputError({.file = file,
                        .key = fmt::format("{}[{}]", key, i),
                        .message = fmt::format("a layer of width {}", widths[i]),
                        .expected = fmt::format("an integer from 1 to {}", kLargestDimension)});
  ModelBuilder m(options);
  m.facts() = {.model_type = "mlp",
               .hidden = widths[1],
               .layers = static_cast<std::int64_t>(widths.size()) - 1};
  m.facts().assumed.push_back("a token is one sample; cross-entropy over the last layer");
  std::vector<LinearModule> layers;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    layers.push_back(m.linear(fmt::format("layers.{}", i), widths[i], widths[i + 1], true));

  Graph& g = m.begin_segment("layers");
  // The first product reads the batch itself, which the data loader keeps.
  Op first{OpKind::linear};
  first.module = layers[0].module;
  first.weight = layers[0].weight;
  first.bias = layers[0].bias;
  first.work = {checked_mul(widths[0], widths[1]), Scale::tokens};
  ValueId x = g.op(first, {widths[1], Scale::tokens});
  for (std::size_t i = 1; i < layers.size(); ++i) x = apply(g, layers[i], g.map(OpKind::relu, x));
  g.begin_logits();
  g.set_output(cross_entropy(g, x));
  return m.build();
}

}  // namespace shardplan
