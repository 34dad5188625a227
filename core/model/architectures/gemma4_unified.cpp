// Gemma 4 12B (models/gemma4_unified): Gemma 4's text model, with patches of images and frames of
// sounds projected where others have towers. Both projections are counted: a job brings them
// nothing, so that they keep nothing and get no gradient.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"

#include <algorithm>

namespace shardplan {
namespace {

/// Gemma4UnifiedVisionEmbedder.
void declare_patches(ModelBuilder& m, const ModelConfig& v, std::int64_t hidden) {
  const std::string at = "model.embed_vision.";
  const std::int64_t width = v.count({"mm_embed_dim"}, 3840);
  const std::int64_t side =
      checked_mul(v.count({"patch_size"}, 16), v.count({"pooling_kernel_size"}, 3));
  const std::int64_t pixels = checked_mul(3, checked_mul(side, side));
  m.tensor(at + "pos_embedding", {v.count({"mm_posemb_size"}, 1120), 2, width},
           ParameterKind::other);
  m.layer_norm(at + "patch_ln1", pixels);
  m.linear(at + "patch_dense", pixels, width, true);
  m.layer_norm(at + "patch_ln2", width);
  m.layer_norm(at + "pos_norm", width);
  m.linear(at + "multimodal_embedder.embedding_projection", v.count({"output_proj_dims"}, 3840),
           hidden);
}

/// The class has both projections between the text model and the head.
void put_before_head(Model& model) {
  const auto rank = [&](const ParameterGroup& group) {
    const std::string& name = model.parameters[static_cast<std::size_t>(group.first)].name;
    if (name.starts_with("model.language_model.")) return 0;
    return name.starts_with("model.") ? 1 : 2;
  };
  std::stable_sort(
      model.groups.begin(), model.groups.end(),
      [&](const ParameterGroup& a, const ParameterGroup& b) { return rank(a) < rank(b); });
}

}  // namespace

Model build_gemma4_unified(const ModelConfig& c, const BuildOptions& options) {
  BuildOptions text_options = options;
  // All layers are given a mask, whatever the length: tokens of an image see each other.
  text_options.masked = c.text("text_config.use_bidirectional_attention", "vision") == "vision";
  Model text =
      text_inside(c, text_options, "gemma4_unified_text", c.flag("tie_word_embeddings", true));
  rename_prefix(text, "model.", "model.language_model.");
  const std::int64_t hidden = text.facts.hidden;
  const auto has = [&](std::string_view key) { return c.entries(key) > 0 || c.is_list(key); };
  ModelBuilder m(options);
  m.set_trains(options.counts_only);
  m.set_like_blocks(true);
  if (has("vision_config")) declare_patches(m, c.inner("vision_config"), hidden);
  if (has("audio_config")) {
    const ModelConfig audio = c.inner("audio_config");
    m.linear("model.embed_audio.embedding_projection",
             audio.count({"output_proj_dims", "audio_embed_dim"}, 640), hidden);
  }
  Model all = with_images(m.build(), std::move(text), {.text_alone = true});
  put_before_head(all);
  return all;
}

}  // namespace shardplan
