// Llama 3.2 with vision (models/mllama): layers of cross attention to image tiles among those of
// Llama 3.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/towers.h"
#include "model/layers/mlp.h"

#include <algorithm>

namespace shardplan {
namespace {

struct MllamaTower {
  std::int64_t width, ffn, tiles, ratios, rows;
};

void tower_layers(ModelBuilder& m, const MllamaTower& t, const std::string& list,
                  std::int64_t layers, bool gated) {
  m.begin_repeat(list, layers);
  if (gated) {
    m.tensor("gate_attn", {1}, ParameterKind::other);
    m.tensor("gate_ffn", {1}, ParameterKind::other);
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    m.linear(std::string("self_attn.") + name, t.width, t.width);
  m.linear("mlp.fc1", t.width, t.ffn, true);
  m.linear("mlp.fc2", t.ffn, t.width, true);
  m.layer_norm("input_layernorm", t.width);
  m.layer_norm("post_attention_layernorm", t.width);
  m.end_repeat();
}

void tile_positions(ModelBuilder& m, const MllamaTower& t, const std::string& name) {
  m.tensor(name + ".gate", {1}, ParameterKind::other);
  m.embedding(name + ".embedding", t.ratios + 1, checked_mul(t.tiles, t.width));
}

void mllama_tower(ModelBuilder& m, const ModelConfig& v) {
  MllamaTower t{};
  t.width = v.count({"hidden_size"}, 1280);
  t.ffn = v.count({"intermediate_size"}, 5120);
  t.tiles = v.count({"max_num_tiles"}, 4);
  t.ratios = v.has("supported_aspect_ratios") ? v.length("supported_aspect_ratios") : 8;
  t.rows = patches_of(v, 448, 14) + 1;
  const std::int64_t patch = side_of(v, "patch_size", 14);
  const std::string at = "model.vision_model.";
  m.tensor(at + "class_embedding", {t.width}, ParameterKind::other);
  m.tensor(at + "patch_embedding.weight", {t.width, v.count({"num_channels"}, 3), patch, patch},
           ParameterKind::linear);
  const std::string places = at + "gated_positional_embedding";
  m.tensor(places + ".gate", {1}, ParameterKind::other);
  m.tensor(places + ".embedding", {t.rows, t.width}, ParameterKind::embedding);
  m.embedding(places + ".tile_embedding", t.ratios + 1,
              checked_mul(checked_mul(t.tiles, t.rows), t.width));
  tile_positions(m, t, at + "pre_tile_positional_embedding");
  tile_positions(m, t, at + "post_tile_positional_embedding");
  m.layer_norm(at + "layernorm_pre", t.width);
  m.layer_norm(at + "layernorm_post", t.width);
  tower_layers(m, t, at + "transformer.layers", v.count({"num_hidden_layers"}, 32), false);
  tower_layers(m, t, at + "global_transformer.layers", v.count({"num_global_layers"}, 8), true);
}

}  // namespace

Model build_mllama_text(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"hidden_size"}, 4096);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 40);
  const std::int64_t heads = c.count({"num_attention_heads"}, 32);
  const std::int64_t kv_heads = c.count({"num_key_value_heads"}, 8);
  const std::int64_t ffn = c.count({"intermediate_size"}, 14336);
  const std::int64_t vocabulary = c.count({"vocab_size"}, 128256);
  c.require_divisible("hidden_size", hidden, "num_attention_heads", heads);
  const std::int64_t width = hidden / heads;
  std::vector<std::int64_t> cross{3, 8, 13, 18, 23, 28, 33, 38};
  if (c.is_list("cross_attention_layers")) cross = c.counts("cross_attention_layers");
  const auto crosses = [&](std::int64_t i) {
    return std::find(cross.begin(), cross.end(), i) != cross.end();
  };
  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocabulary,
               .max_positions = c.count_or_zero("max_position_embeddings", 131072),
               .attention_heads = heads,
               .key_value_heads = kv_heads};
  // Eight tokens of images have rows of the table and none of the head.
  m.embedding("model.embed_tokens", vocabulary + 8, hidden);
  register_layers(m, "model.layers", layers, crosses, [&](bool is) {
    const std::string at = is ? "cross_attn." : "self_attn.";
    if (is) {
      m.tensor("cross_attn_attn_gate", {1}, ParameterKind::other);
      m.tensor("cross_attn_mlp_gate", {1}, ParameterKind::other);
    }
    m.linear(at + "q_proj", hidden, heads * width);
    m.linear(at + "k_proj", hidden, kv_heads * width);
    m.linear(at + "v_proj", hidden, kv_heads * width);
    m.linear(at + "o_proj", heads * width, hidden);
    if (is) {
      m.rms_norm(at + "q_norm", width);
      m.rms_norm(at + "k_norm", width);
    }
    gated_mlp(m, "mlp", hidden, ffn);
    m.rms_norm("input_layernorm", hidden);
    m.rms_norm("post_attention_layernorm", hidden);
  });
  m.rms_norm("model.norm", hidden);
  m.linear("lm_head", hidden, vocabulary);
  return m.build();
}

Model build_mllama(const ModelConfig& c, const BuildOptions& options) {
  Model text = text_inside(c, options, "mllama_text_model", false);
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  ModelBuilder m(options);
  mllama_tower(m, v);
  m.linear("model.multi_modal_projector", v.count({"vision_output_dim"}, 7680), text.facts.hidden,
           true);
  return joined(m.build(), std::move(text));
}

}  // namespace shardplan
