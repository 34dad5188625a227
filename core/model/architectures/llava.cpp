// Networks that put a projector between a vision tower of CLIP's kind and a text model: LLaVA
// (models/llava), LLaVA-NeXT (models/llava_next), Mistral Small 3.1 (models/mistral3), Gemma 3
// (models/gemma3), PaliGemma (models/paligemma).
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/towers.h"

namespace shardplan {
namespace {

constexpr TowerDefaults kClip{
    .hidden = 1024, .ffn = 4096, .layers = 24, .heads = 16, .image = 336, .patch = 14};
constexpr TowerDefaults kPixtral{
    .hidden = 1024, .ffn = 4096, .layers = 24, .heads = 16, .image = 1540, .patch = 14};

/// The class's own defaults count where the configuration has a tower, those of `whole` where not.
TowerDefaults defaults_for(const ModelConfig& vision, const TowerDefaults& whole) {
  if (!vision.has("model_type") && !vision.has("hidden_size")) return whole;
  const std::string type = vision.text("model_type", "");
  if (type == "pixtral")
    return {.hidden = 1024, .ffn = 4096, .layers = 24, .heads = 16, .image = 1024, .patch = 16};
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

void two_linears(ModelBuilder& m, std::int64_t in, std::int64_t out, bool bias) {
  m.linear("model.multi_modal_projector.linear_1", in, out, bias);
  m.linear("model.multi_modal_projector.linear_2", out, out, bias);
}

Model build_llava_like(const ModelConfig& c, const BuildOptions& options, bool newline) {
  Model text = text_inside(c, options, "llama", ties(c, false, !newline));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t hidden = text.facts.hidden;
  ModelBuilder m(options);
  if (newline) m.tensor("model.image_newline", {hidden}, ParameterKind::other);
  const TowerDefaults defaults = defaults_for(v, kClip);
  named_tower(m, "model.vision_tower.", v, "clip_vision_model", defaults);
  two_linears(m, checked_mul(v.count({"hidden_size"}, defaults.hidden), joined_features(c)), hidden,
              c.flag("multimodal_projector_bias", true));
  return joined(m.build(), std::move(text));
}

}  // namespace

Model build_llava(const ModelConfig& c, const BuildOptions& options) {
  return build_llava_like(c, options, false);
}

Model build_llava_next(const ModelConfig& c, const BuildOptions& options) {
  return build_llava_like(c, options, true);
}

Model build_mistral3(const ModelConfig& c, const BuildOptions& options) {
  require_text(c);
  Model text = text_inside(c, options, "mistral", ties(c, true, false));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  const TowerDefaults defaults = defaults_for(v, kPixtral);
  const std::int64_t width = v.count({"hidden_size"}, defaults.hidden);
  const std::int64_t merge = c.count({"spatial_merge_size"}, 2);
  ModelBuilder m(options);
  named_tower(m, "model.vision_tower.", v, "pixtral", defaults);
  const std::string at = "model.multi_modal_projector.";
  m.rms_norm(at + "norm", width);
  m.linear(at + "patch_merger.merging_layer", checked_mul(width, merge * merge), width);
  two_linears(m, checked_mul(width, joined_features(c)), text.facts.hidden,
              c.flag("multimodal_projector_bias", false));
  return joined(m.build(), std::move(text));
}

Model build_gemma3(const ModelConfig& c, const BuildOptions& options) {
  Model text = text_inside(c, options, "gemma3_text", ties(c, true, false));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t width = v.count({"hidden_size"}, 768);
  ModelBuilder m(options);
  named_tower(m, "model.vision_tower.", v, "siglip_vision_model", {});
  const std::string at = "model.multi_modal_projector.";
  m.tensor(at + "mm_input_projection_weight", {width, text.facts.hidden}, ParameterKind::linear);
  m.rms_norm(at + "mm_soft_emb_norm", width);
  return joined(m.build(), std::move(text));
}

Model build_paligemma(const ModelConfig& c, const BuildOptions& options) {
  require_text(c);
  Model text = text_inside(c, options, "gemma", ties(c, true, false));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  const TowerDefaults defaults = defaults_for(
      v,
      {.hidden = 1152, .ffn = 4096, .layers = 27, .heads = 16, .patch = 14, .pooling_head = false});
  ModelBuilder m(options);
  named_tower(m, "model.vision_tower.", v, "siglip_vision_model", defaults);
  m.linear("model.multi_modal_projector.linear", v.count({"hidden_size"}, defaults.hidden),
           c.count({"projection_dim"}, 2048), true);
  return joined(m.build(), std::move(text));
}

}  // namespace shardplan
