// Mistral Small 3.1 and 3.2, Ministral 3 and Magistral with vision (models/mistral3): Pixtral's
// tower, a merger of neighbouring patches and a projector before any text model.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/architectures/pixtral.h"
#include "model/layers/norms.h"

#include <fmt/format.h>

namespace shardplan {
namespace {

struct Mistral3Projector {
  NormModule norm;
  LinearModule merging, first, second;
  std::int64_t joined = 4;  ///< patches of a token
  Activation activation = Activation::gelu;
};

Mistral3Projector mistral3_projector(ModelBuilder& m, const ModelConfig& c, std::int64_t width,
                                     std::int64_t features, std::int64_t hidden) {
  const std::int64_t merge = c.count({"spatial_merge_size"}, 2);
  const bool bias = c.flag("multimodal_projector_bias", false);
  const std::string at = "model.multi_modal_projector.";
  Mistral3Projector p;
  p.joined = merge * merge;
  p.norm = m.rms_norm(at + "norm", width);
  p.merging = m.linear(at + "patch_merger.merging_layer", checked_mul(width, p.joined), width);
  p.first = m.linear(at + "linear_1", checked_mul(width, features), hidden, bias);
  p.second = m.linear(at + "linear_2", hidden, hidden, bias);
  p.activation = read_activation(c, "projector_hidden_act", "gelu");
  return p;
}

void write_mistral3_projector(ModelBuilder& m, const Mistral3Projector& p, std::int64_t width,
                              std::int64_t tokens) {
  Graph& g = m.begin_segment("projector");
  const ValueId normal = rms_norm(g, p.norm, g.chained_input({width, Scale::patches}));
  // Each image as a grid: in order for the unfolding, unfolded, and joined with the others.
  const ValueId grid = g.map(OpKind::copy, g.map(OpKind::copy, g.map(OpKind::copy, normal)));
  const ValueId rows = g.view(grid, {checked_mul(tokens, p.merging.in), Scale::images});
  const ValueId inner = activate(g, p.activation, apply(g, p.first, apply(g, p.merging, rows)));
  g.set_output(g.map(OpKind::copy, apply(g, p.second, inner)));  // torch.cat of the images
}

/// How many of the tower's layers are read: vision_feature_layer, where -1 is the last one's.
std::int64_t read_layers(const ModelConfig& c, const BuildOptions& options, std::int64_t layers) {
  if (options.counts_only) return layers;
  const bool one = !c.is_list("vision_feature_layer");
  const auto layer = one ? static_cast<std::int64_t>(c.number("vision_feature_layer", -1)) : 0;
  const std::int64_t until = layer < 0 ? layers + 1 + layer : layer;
  if (until < 1 || until > layers)
    c.fail("vision_feature_layer", "can be counted but not estimated",
           "one layer of the tower, such as -1");
  return until;
}

}  // namespace

Model build_mistral3(const ModelConfig& c, const BuildOptions& options) {
  if (c.entries("text_config") == 0) c.fail("text_config", "missing", "the text model's keys");
  Model text = text_inside(c, options, "mistral", c.flag("tie_word_embeddings", true));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  if (v.text("model_type", "pixtral") != "pixtral")
    v.fail("model_type", "a tower that is not described", "pixtral");
  const TowerDefaults defaults = pixtral_defaults(
      v, {.hidden = 1024, .ffn = 4096, .layers = 24, .heads = 16, .image = 1540, .patch = 14});
  const std::int64_t features =
      c.is_list("vision_feature_layer") ? c.length("vision_feature_layer") : 1;
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  const PixtralTower tower =
      pixtral_tower(m, "model.vision_tower.", v, defaults,
                    read_layers(c, options, v.count({"num_hidden_layers"}, defaults.layers)));
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  const Mistral3Projector projector =
      mistral3_projector(m, c, tower.hidden, features, text.facts.hidden);
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  const bool said = options.images.tokens > 0;
  const std::int64_t tokens =
      said ? options.images.tokens
           : std::max<std::int64_t>(1, most_patches(v, defaults) / projector.joined);
  if (!said)
    text.facts.assumed.push_back(
        fmt::format("{} tokens for an image, as large as vision_config.image_size", tokens));
  write_pixtral(m, tower);
  write_mistral3_projector(m, projector, tower.hidden, tokens);
  const std::int64_t patches = checked_mul(tokens, projector.joined);
  return with_images(
      m.build(), std::move(text),
      {.tokens = tokens, .patches = patches, .values = checked_mul(patches, tower.values)});
}

}  // namespace shardplan
