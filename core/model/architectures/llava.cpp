// Networks that put a projector between a vision tower of CLIP's kind and a text model: LLaVA
// (models/llava), LLaVA-NeXT (models/llava_next), Gemma 3 (models/gemma3), PaliGemma
// (models/paligemma); Pixtral's, in Pixtral 12B, is LLaVA's too.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/architectures/pixtral.h"
#include "model/architectures/towers.h"
#include "model/layers/norms.h"

#include <fmt/format.h>

namespace shardplan {
namespace {

constexpr TowerDefaults kClip{
    .hidden = 1024, .ffn = 4096, .layers = 24, .heads = 16, .image = 336, .patch = 14};

/// The class's own defaults count where the configuration has a tower, those of `whole` where not.
TowerDefaults defaults_for(const ModelConfig& vision, const TowerDefaults& whole) {
  if (!vision.has("model_type") && !vision.has("hidden_size")) return whole;
  const std::string type = vision.text("model_type", "");
  if (type == "clip_vision_model" || (type.empty() && whole.patch == 14 && whole.image == 336))
    return {.patch = 32};
  return {};
}

/// Layers of the tower whose rows are joined.
std::int64_t joined_features(const ModelConfig& c) {
  return c.is_list("vision_feature_layer") ? c.length("vision_feature_layer") : 1;
}

/// The class has a text model of its own choice where none is given.
void require_text(const ModelConfig& c) {
  if (c.entries("text_config") == 0) c.fail("text_config", "missing", "the text model's keys");
}

bool ties(const ModelConfig& c, bool fallback, bool text_too) {
  return c.flag("tie_word_embeddings", fallback) ||
         (text_too && c.flag("text_config.tie_word_embeddings", false));
}

struct Projector {
  LinearModule first, second;
};

Projector two_linears(ModelBuilder& m, std::int64_t in, std::int64_t out, bool bias) {
  Projector p;
  p.first = m.linear("model.multi_modal_projector.linear_1", in, out, bias);
  p.second = m.linear("model.multi_modal_projector.linear_2", out, out, bias);
  return p;
}

/// What the tower of `t` is to the sequence.
ImageFacts facts_of(const Tower& t, std::int64_t tokens, std::int64_t pieces = 1) {
  return {.tokens = tokens, .pieces = pieces, .patches = t.rows(), .values = t.values};
}

/// The layers of the tower up to the one whose rows are taken: vision_feature_layer, where -1 is
/// the last one's.
TowerUse layers_until(const ModelConfig& c, const BuildOptions& options, std::int64_t layers) {
  if (options.counts_only) return {};
  const bool one = !c.is_list("vision_feature_layer");
  const auto layer = one ? static_cast<std::int64_t>(c.number("vision_feature_layer", -2)) : 0;
  const std::int64_t until = layer < 0 ? layers + 1 + layer : layer;
  if (until < 1 || until > layers)
    c.fail("vision_feature_layer", "can be counted but not estimated",
           "one layer of the tower, such as -2");
  return {.layers = until, .norm = false};
}

/// Whether the row of the class is left out.
bool drops_class(const ModelConfig& c) {
  return c.text("vision_feature_select_strategy", "default") == "default";
}

/// The tower's rows of each image through the projector.
void write_projector(ModelBuilder& m, const Tower& t, const Projector& p, Activation activation,
                     bool drops) {
  Graph& g = m.begin_segment("projector");
  const ValueId x = g.chained_input({t.hidden, Scale::patches});
  const std::int64_t rows = t.rows() - (drops ? 1 : 0);
  const Extent taken{rows * t.hidden, Scale::images};
  // A linear reads a slice of several images from a copy of it.
  const ValueId features =
      drops ? g.op({OpKind::fold_heads, {x, kNone, kNone}}, taken) : g.view(x, taken);
  const ValueId inner = activate(g, activation, apply(g, p.first, features));
  g.set_output(g.map(OpKind::copy, apply(g, p.second, inner)));  // torch.cat of the images
}

/// LLaVA-NeXT sees an image whole and in four pieces, a square of two by two; rows of patches end
/// in a newline (pack_image_features).
Model with_pieces(ModelBuilder& m, const BuildOptions& options, const Tower& t, ParameterId line,
                  Model text) {
  constexpr std::int64_t kPieces = 5;
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) <= t.patches) ++side;
  const bool said = options.images.tokens > 0;
  const std::int64_t tokens = said ? options.images.tokens : t.patches + 4 * side * side + 2 * side;
  if (!said)
    text.facts.assumed.push_back(
        fmt::format("{} tokens for an image: whole and in four pieces, a square", tokens));
  const std::int64_t hidden = text.facts.hidden;
  Graph& g = m.begin_segment("pieces");
  const ValueId x = g.chained_input({checked_mul(t.patches, hidden), Scale::images});
  const Extent all{checked_mul(checked_mul(options.images.per_sample, tokens), hidden),
                   Scale::batch};
  // The pieces side by side; with their newlines; with the whole; with the other images.
  const ValueId square = g.map(OpKind::copy, x);
  Op newline{OpKind::parameter};
  newline.module = m.owner(line);
  newline.weight = line;
  const ValueId end = g.op(newline, {hidden, Scale::one});
  const ValueId ended = g.op({OpKind::cat, {square, end, kNone}}, all);
  g.set_output(g.map(OpKind::copy, g.map(OpKind::copy, ended)));
  return with_images(m.build(), std::move(text), facts_of(t, tokens, kPieces));
}

/// Pixtral 12B: images of any size, a token for each patch.
Model with_pixtral(const ModelConfig& c, const BuildOptions& options, Model text) {
  const ModelConfig v = c.inner("vision_config");
  const TowerDefaults defaults = pixtral_defaults(v, kClip);
  const TowerUse use = layers_until(c, options, v.count({"num_hidden_layers"}, defaults.layers));
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  const PixtralTower t = pixtral_tower(m, "model.vision_tower.", v, defaults, use.layers);
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  const Projector p = two_linears(m, checked_mul(t.hidden, joined_features(c)), text.facts.hidden,
                                  c.flag("multimodal_projector_bias", true));
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  if (drops_class(c))
    c.fail("vision_feature_select_strategy", "can be counted but not estimated with this tower",
           "full");
  const bool said = options.images.tokens > 0;
  const std::int64_t tokens = said ? options.images.tokens : most_patches(v, defaults);
  if (!said)
    text.facts.assumed.push_back(
        fmt::format("{} tokens for an image, as large as vision_config.image_size", tokens));
  write_pixtral(m, t);
  Graph& g = m.begin_segment("projector");
  const ValueId rows = g.view(g.chained_input({t.hidden, Scale::patches}),
                              {checked_mul(tokens, t.hidden), Scale::images});
  const Activation activation = read_activation(c, "projector_hidden_act", "gelu");
  const ValueId inner = activate(g, activation, apply(g, p.first, rows));
  g.set_output(g.map(OpKind::copy, apply(g, p.second, inner)));  // torch.cat of the images
  return with_images(
      m.build(), std::move(text),
      {.tokens = tokens, .patches = tokens, .values = checked_mul(tokens, t.values)});
}

Model build_llava_like(const ModelConfig& c, const BuildOptions& options, bool newline) {
  Model text = text_inside(c, options, "llama", ties(c, false, !newline));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t hidden = text.facts.hidden;
  if (!newline && v.text("model_type", "clip_vision_model") == "pixtral")
    return with_pixtral(c, options, std::move(text));
  ModelBuilder m(options);
  m.set_trains(projector_trains(options));
  ParameterId line = kNone;
  if (newline) line = m.tensor("model.image_newline", {hidden}, ParameterKind::other);
  const TowerDefaults defaults = defaults_for(v, kClip);
  m.set_trains(tower_trains(options));
  Tower tower =
      named_tower(m, "model.vision_tower.", v, "clip_vision_model", defaults,
                  layers_until(c, options, v.count({"num_hidden_layers"}, defaults.layers)));
  tower.copies_pixels = newline;  // torch.cat of the pieces
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  const Projector projector =
      two_linears(m, checked_mul(v.count({"hidden_size"}, defaults.hidden), joined_features(c)),
                  hidden, c.flag("multimodal_projector_bias", true));
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  const bool drops = drops_class(c) && tower.class_token != kNone;
  write_tower(m, tower);
  write_projector(m, tower, projector, read_activation(c, "projector_hidden_act", "gelu"), drops);
  if (newline && !drops)
    c.fail("vision_feature_select_strategy", "can be counted but not estimated", "default");
  if (newline) return with_pieces(m, options, tower, line, std::move(text));
  const std::int64_t tokens = tower.rows() - (drops ? 1 : 0);
  return with_images(m.build(), std::move(text), facts_of(tower, fixed_tokens(c, options, tokens)));
}

}  // namespace

Model build_llava(const ModelConfig& c, const BuildOptions& options) {
  return build_llava_like(c, options, false);
}

Model build_llava_next(const ModelConfig& c, const BuildOptions& options) {
  return build_llava_like(c, options, true);
}

namespace {

/// Gemma 3's projector: the mean of neighbouring patches, a norm, and a product with a parameter
/// that is stored as [in, out].
struct Gemma3Projector {
  ParameterId weight = kNone;
  NormModule norm;
  std::int64_t tokens = 0, width = 0;  ///< of an image; of the text model
};

void write_gemma3_projector(ModelBuilder& m, const Tower& t, const Gemma3Projector& p) {
  Graph& g = m.begin_segment("projector");
  const ValueId x = g.chained_input({t.hidden, Scale::patches});
  const ValueId image = g.op({OpKind::copy, {x, kNone, kNone}}, {t.hidden, Scale::patches});
  const ValueId pooled =
      g.op({OpKind::pool, {image, kNone, kNone}}, {p.tokens * t.hidden, Scale::images});
  const ValueId normal = normalize(g, NormKind::gemma, p.norm, pooled);
  Op product{OpKind::linear, {normal, kNone, kNone}};
  product.module = m.owner(p.weight);
  product.weight = p.weight;
  product.work = {checked_mul(p.tokens * t.hidden, p.width), Scale::images};
  g.set_output(g.op(product, {checked_mul(p.tokens, p.width), Scale::images}));
}

/// Text whose tokens of an image see each other, where the job has images.
BuildOptions seeing_images(const BuildOptions& options) {
  BuildOptions masked = options;
  masked.masked = options.images.per_sample > 0;
  return masked;
}

}  // namespace

Model build_gemma3(const ModelConfig& c, const BuildOptions& options) {
  Model text = text_inside(c, seeing_images(options), "gemma3_text", ties(c, true, false));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  Gemma3Projector p{.width = text.facts.hidden};
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  const Tower tower = named_tower(m, "model.vision_tower.", v, "siglip_vision_model", {});
  m.set_trains(projector_trains(options));
  const std::string at = "model.multi_modal_projector.";
  const std::int64_t width = v.count({"hidden_size"}, 768);
  p.weight = m.tensor(at + "mm_input_projection_weight", {width, p.width}, ParameterKind::linear);
  p.norm = m.rms_norm(at + "mm_soft_emb_norm", width);
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  p.tokens = fixed_tokens(c, options, c.count({"mm_tokens_per_image"}, 256));
  write_tower(m, tower);
  write_tower_norm(m, tower);
  write_gemma3_projector(m, tower, p);
  return with_images(m.build(), std::move(text), facts_of(tower, p.tokens));
}

Model build_paligemma(const ModelConfig& c, const BuildOptions& options) {
  require_text(c);
  Model text = text_inside(c, seeing_images(options), "gemma", ties(c, true, false));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  const TowerDefaults defaults = defaults_for(
      v,
      {.hidden = 1152, .ffn = 4096, .layers = 27, .heads = 16, .patch = 14, .pooling_head = false});
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  const Tower tower = named_tower(m, "model.vision_tower.", v, "siglip_vision_model", defaults);
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  const LinearModule projector =
      m.linear("model.multi_modal_projector.linear", v.count({"hidden_size"}, defaults.hidden),
               c.count({"projection_dim"}, 2048), true);
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  const std::int64_t tokens = fixed_tokens(c, options, tower.patches);
  write_tower(m, tower);
  write_tower_norm(m, tower);
  Graph& g = m.begin_segment("projector");
  const ValueId x = g.chained_input({tower.hidden, Scale::patches});
  g.set_output(apply(g, projector, g.view(x, {tokens * tower.hidden, Scale::images})));
  return with_images(m.build(), std::move(text), facts_of(tower, tokens));
}

}  // namespace shardplan
