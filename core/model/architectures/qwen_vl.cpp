// Qwen 2-VL, 2.5-VL, 3-VL and 3.5 (models/qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_vl_moe, qwen3_5,
// qwen3_5_moe): a vision tower of their own in front of the text models of the generation.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/decoder.h"

namespace shardplan {
namespace {

/// visual.patch_embed.proj over temporal_patch_size images.
void patch_volume(ModelBuilder& m, const ModelConfig& v, std::int64_t width, std::int64_t patch,
                  bool bias) {
  const std::string name = "model.visual.patch_embed.proj";
  const std::int64_t side = v.count({"patch_size"}, patch);
  m.tensor(name + ".weight",
           {width, v.count({"in_channels", "in_chans"}, 3), v.count({"temporal_patch_size"}, 2),
            side, side},
           ParameterKind::linear);
  if (bias) m.tensor(name + ".bias", {width}, ParameterKind::bias);
}

std::int64_t merged_width(const ModelConfig& v, std::int64_t width) {
  const std::int64_t merge = v.count({"spatial_merge_size"}, 2);
  return checked_mul(width, merge * merge);
}

void attention_of_tower(ModelBuilder& m, std::int64_t width) {
  m.linear("attn.qkv", width, 3 * width, true);
  m.linear("attn.proj", width, width, true);
}

void old_merger(ModelBuilder& m, const ModelConfig& v, std::int64_t width, std::int64_t out,
                bool norm_bias) {
  const std::int64_t merged = merged_width(v, width);
  m.layer_norm("model.visual.merger.ln_q", width, norm_bias);
  m.linear("model.visual.merger.mlp.0", merged, merged, true);
  m.linear("model.visual.merger.mlp.2", merged, out, true);
}

/// Files of before transformers 4.52 have the text model's keys beside the tower's.
ModelConfig with_text_inside(const ModelConfig& c) {
  return c.entries("text_config") > 0 ? c : c.nested("text_config");
}

Model around(const ModelConfig& c, const BuildOptions& options, std::string_view type,
             bool text_ties, ModelBuilder& m) {
  const bool tied = c.flag("tie_word_embeddings", false) ||
                    (text_ties && c.flag("text_config.tie_word_embeddings", false));
  Model text = text_inside(with_text_inside(c), options, type, tied);
  rename_prefix(text, "model.", "model.language_model.");
  return joined(m.build(), std::move(text));
}

struct NewTower {
  std::int64_t width, merged, out;
};

/// The merger of 3-VL; one after the deeper layers has its norm over the joined rows.
void new_merger(ModelBuilder& m, const std::string& at, const NewTower& t, bool joined_norm) {
  m.layer_norm(at + "norm", joined_norm ? t.merged : t.width);
  m.linear(at + "linear_fc1", t.merged, t.merged, true);
  m.linear(at + "linear_fc2", t.merged, t.out, true);
}

void new_tower(ModelBuilder& m, const ModelConfig& v, std::int64_t deep) {
  NewTower t{.width = v.count({"hidden_size"}, 1152)};
  t.merged = merged_width(v, t.width);
  t.out = v.count({"out_hidden_size"}, 3584);
  const std::int64_t ffn = v.count({"intermediate_size"}, 4304);
  patch_volume(m, v, t.width, 16, true);
  m.embedding("model.visual.pos_embed", v.count({"num_position_embeddings"}, 2304), t.width);
  m.begin_repeat("model.visual.blocks", v.count({"depth"}, 27));
  m.layer_norm("norm1", t.width);
  m.layer_norm("norm2", t.width);
  attention_of_tower(m, t.width);
  m.linear("mlp.linear_fc1", t.width, ffn, true);
  m.linear("mlp.linear_fc2", ffn, t.width, true);
  m.end_repeat();
  new_merger(m, "model.visual.merger.", t, false);
  if (deep == 0) return;
  m.begin_repeat("model.visual.deepstack_merger_list", deep);
  new_merger(m, "", t, true);
  m.end_repeat();
}

std::int64_t deep_layers(const ModelConfig& v) {
  return v.has("deepstack_visual_indexes") ? v.length("deepstack_visual_indexes") : 3;
}

}  // namespace

Model build_qwen2_vl(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t width = v.count({"embed_dim"}, 1280);
  const std::int64_t ffn = checked_mul(width, v.count({"mlp_ratio"}, 4));
  ModelBuilder m(options);
  patch_volume(m, v, width, 14, false);
  m.begin_repeat("model.visual.blocks", v.count({"depth"}, 32));
  m.layer_norm("norm1", width);
  m.layer_norm("norm2", width);
  attention_of_tower(m, width);
  m.linear("mlp.fc1", width, ffn, true);
  m.linear("mlp.fc2", ffn, width, true);
  m.end_repeat();
  old_merger(m, v, width, v.count({"hidden_size"}, 3584), true);
  return around(c, options, "qwen2_vl_text", true, m);
}

Model build_qwen2_5_vl(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t width = v.count({"hidden_size"}, 3584);
  const std::int64_t ffn = v.count({"intermediate_size"}, 3420);
  ModelBuilder m(options);
  patch_volume(m, v, width, 14, false);
  m.begin_repeat("model.visual.blocks", v.count({"depth"}, 32));
  m.rms_norm("norm1", width);
  m.rms_norm("norm2", width);
  attention_of_tower(m, width);
  gated_mlp(m, "mlp", width, ffn, true);
  m.end_repeat();
  old_merger(m, v, width, v.count({"out_hidden_size"}, 3584), false);
  return around(c, options, "qwen2_5_vl_text", true, m);
}

Model build_qwen3_vl(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = c.inner("vision_config");
  ModelBuilder m(options);
  new_tower(m, v, deep_layers(v));
  return around(c, options, "qwen3_vl_text", false, m);
}

Model build_qwen3_vl_moe(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = c.inner("vision_config");
  ModelBuilder m(options);
  new_tower(m, v, deep_layers(v));
  return around(c, options, "qwen3_vl_moe_text", false, m);
}

Model build_qwen3_5(const ModelConfig& c, const BuildOptions& options) {
  ModelBuilder m(options);
  new_tower(m, c.inner("vision_config"), 0);
  return around(c, options, "qwen3_5_text", false, m);
}

Model build_qwen3_5_moe(const ModelConfig& c, const BuildOptions& options) {
  ModelBuilder m(options);
  new_tower(m, c.inner("vision_config"), 0);
  return around(c, options, "qwen3_5_moe_text", false, m);
}

/// Qwen 2's and 2.5's text model, with the defaults of the networks with images.
Model build_qwen2_vl_text(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 8192,
                                          .ffn = 29568,
                                          .layers = 80,
                                          .heads = 64,
                                          .kv_heads = 8,
                                          .vocab = 152064,
                                          .positions = 32768,
                                          .reads_head_dim = false});
  d.qkv_bias = true;
  return build_decoder(d, options);
}

Model build_qwen3_vl_text(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 4096,
                                          .ffn = 22016,
                                          .layers = 32,
                                          .heads = 32,
                                          .kv_heads = 32,
                                          .head_dim = 128,
                                          .vocab = 151936,
                                          .positions = 128000});
  d.qkv_bias = d.output_bias = c.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  return build_decoder(d, options);
}

Model build_qwen3_vl_moe_text(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 2048,
                                          .ffn = 5632,
                                          .layers = 24,
                                          .heads = 16,
                                          .kv_heads = 16,
                                          .vocab = 151936,
                                          .positions = 128000,
                                          .tied = true});
  d.qkv_bias = d.output_bias = c.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"num_experts", "num_local_experts"}, 60),
                   .ffn = c.count({"moe_intermediate_size"}, 1408),
                   .normalize = true,
                   .experts_first = true};
  s.top_k = experts_per_token(c, "num_experts_per_tok", 4, s.experts);
  d.sparse = s;
  d.sparse_layers = read_sparse_layers(c, d.layers);
  return build_decoder(d, options);
}

}  // namespace shardplan
