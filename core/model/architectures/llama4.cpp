// Llama 4 (models/llama4): the text model inside, and its vision tower, which is counted.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/architectures/towers.h"

namespace shardplan {

Model build_llama4(const ModelConfig& c, const BuildOptions& options) {
  require_text_alone(c, options);
  Model text =
      text_inside(c, options, "llama4_text", c.flag("text_config.tie_word_embeddings", false));
  rename_prefix(text, "model.", "language_model.model.");
  rename_prefix(text, "lm_head.", "language_model.lm_head.");
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t width = v.count({"hidden_size"}, 768);
  const std::int64_t ffn = v.count({"intermediate_size"}, 5632);
  const std::int64_t patch = side_of(v, "patch_size", 14);
  const std::int64_t in = v.count({"projector_input_dim"}, 4096);
  const std::int64_t out = v.count({"projector_output_dim"}, 4096);
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  const std::string at = "vision_model.";
  m.tensor(at + "class_embedding", {width}, ParameterKind::other);
  m.tensor(at + "positional_embedding_vlm", {patches_of(v, 448, 14) + 1, width},
           ParameterKind::embedding);
  m.linear(at + "patch_embedding.linear",
           checked_mul(v.count({"num_channels"}, 3), checked_mul(patch, patch)), width);
  m.layer_norm(at + "layernorm_pre", width);
  m.layer_norm(at + "layernorm_post", width);
  m.begin_repeat(at + "model.layers", v.count({"num_hidden_layers"}, 34));
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    m.linear(std::string("self_attn.") + name, width, width, true);
  m.linear("mlp.fc1", width, ffn, true);
  m.linear("mlp.fc2", ffn, width, true);
  m.layer_norm("input_layernorm", width);
  m.layer_norm("post_attention_layernorm", width);
  m.end_repeat();
  m.linear(at + "vision_adapter.mlp.fc1", ffn, in);
  m.linear(at + "vision_adapter.mlp.fc2", out, out);
  m.set_trains(projector_trains(options));
  m.linear("multi_modal_projector.linear_1", v.count({"vision_output_dim"}, 7680),
           text.facts.hidden);
  return with_images(m.build(), std::move(text), {});
}

}  // namespace shardplan
