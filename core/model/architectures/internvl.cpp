// InternVL 3 as transformers has it (models/internvl): a vision transformer with scaled layers, a
// projector over joined patches, any text model.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/towers.h"

namespace shardplan {
namespace {

void internvl_layers(ModelBuilder& m, const ModelConfig& v, std::int64_t width) {
  const std::int64_t ffn = v.count({"intermediate_size"}, 4096);
  const bool bias = v.flag("attention_bias", false);
  const bool rms = v.text("norm_type", "layer_norm") == "rms_norm";
  m.begin_repeat("model.vision_tower.encoder.layer", v.count({"num_hidden_layers"}, 24));
  m.tensor("lambda_1", {width}, ParameterKind::other);
  m.tensor("lambda_2", {width}, ParameterKind::other);
  for (const char* name : {"q_proj", "k_proj", "v_proj"})
    m.linear(std::string("attention.") + name, width, width, bias);
  m.linear("attention.projection_layer", width, width, true);
  if (v.flag("use_qk_norm", false)) {
    m.rms_norm("attention.q_norm", width);
    m.rms_norm("attention.k_norm", width);
  }
  m.linear("mlp.fc1", width, ffn, true);
  m.linear("mlp.fc2", ffn, width, true);
  m.layer_norm("layernorm_before", width, !rms);
  m.layer_norm("layernorm_after", width, !rms);
  m.end_repeat();
}

}  // namespace

Model build_internvl(const ModelConfig& c, const BuildOptions& options) {
  Model text = text_inside(c, options, "qwen2", c.flag("tie_word_embeddings", true));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t width = v.count({"hidden_size"}, 1024);
  const std::string at = "model.vision_tower.embeddings.";
  ModelBuilder m(options);
  m.tensor(at + "cls_token", {1, 1, width}, ParameterKind::other);
  if (v.flag("use_mask_token", false))
    m.tensor(at + "mask_token", {1, 1, width}, ParameterKind::other);
  if (v.flag("use_absolute_position_embeddings", true))
    m.tensor(at + "position_embeddings", {1, patches_of(v, 448, 14) + 1, width},
             ParameterKind::embedding);
  const std::int64_t patch = side_of(v, "patch_size", 14);
  const std::string projection = at + "patch_embeddings.projection";
  m.tensor(projection + ".weight", {width, v.count({"num_channels"}, 3), patch, patch},
           ParameterKind::linear);
  m.tensor(projection + ".bias", {width}, ParameterKind::bias);
  internvl_layers(m, v, width);
  if (!v.flag("use_mean_pooling", true)) m.layer_norm("model.vision_tower.layernorm", width);
  const double ratio = c.number("downsample_ratio", 0.5);
  if (ratio <= 0 || ratio > 1) c.fail("downsample_ratio", "out of range", "more than 0, at most 1");
  const auto side = static_cast<std::int64_t>(1 / ratio);
  const std::int64_t joined_width = checked_mul(width, side * side);
  m.layer_norm("model.multi_modal_projector.layer_norm", joined_width);
  m.linear("model.multi_modal_projector.linear_1", joined_width, text.facts.hidden, true);
  m.linear("model.multi_modal_projector.linear_2", text.facts.hidden, text.facts.hidden, true);
  return joined(m.build(), std::move(text));
}

}  // namespace shardplan
