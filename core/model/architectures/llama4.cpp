// Llama 4 (models/llama4): the text model, experts in some layers, and its vision tower.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/towers.h"
#include "model/layers/experts.h"
#include "model/layers/mlp.h"

#include <algorithm>

namespace shardplan {

Model build_llama4_text(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"hidden_size"}, 5120);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 48);
  const std::int64_t heads = c.count({"num_attention_heads"}, 40);
  const std::int64_t kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(heads);
  const std::int64_t head_dim = c.nullable_count("head_dim", 128).value_or(hidden / heads);
  const std::int64_t ffn = c.count({"intermediate_size"}, 8192);
  const std::int64_t dense_ffn = c.count({"intermediate_size_mlp"}, 16384);
  const std::int64_t count = c.count({"num_local_experts"}, 16);
  const std::int64_t step = c.count({"interleave_moe_layer_step"}, 1);
  const std::vector<std::int64_t> listed = c.counts("moe_layers");
  const bool bias = c.flag("attention_bias", false);
  const auto is_sparse = [&](std::int64_t i) {
    if (c.is_list("moe_layers")) return std::find(listed.begin(), listed.end(), i) != listed.end();
    return (i + 1) % step == 0;
  };
  const ModelFacts facts{.layers = layers,
                         .max_positions = c.count_or_zero("max_position_embeddings", 131072),
                         .attention_heads = heads,
                         .key_value_heads = kv_heads};
  const CountedStack stack{.hidden = hidden,
                           .vocabulary = c.count({"vocab_size"}, 202048),
                           .tied = c.flag("tie_word_embeddings", false)};
  const std::string at = "feed_forward.";
  return counted_decoder(options, facts, stack, [&](ModelBuilder& m) {
    register_layers(m, "model.layers", layers, is_sparse, [&](bool sparse) {
      m.linear("self_attn.q_proj", hidden, heads * head_dim, bias);
      m.linear("self_attn.k_proj", hidden, kv_heads * head_dim, bias);
      m.linear("self_attn.v_proj", hidden, kv_heads * head_dim, bias);
      m.linear("self_attn.o_proj", heads * head_dim, hidden, bias);
      if (sparse) {
        m.tensor(at + "experts.gate_up_proj", {count, hidden, 2 * ffn}, ParameterKind::expert);
        m.tensor(at + "experts.down_proj", {count, ffn, hidden}, ParameterKind::expert);
        router(m, at + "router", hidden, count);
        gated_mlp(m, at + "shared_expert", hidden, ffn);
      } else {
        gated_mlp(m, "feed_forward", hidden, dense_ffn);
      }
      m.rms_norm("input_layernorm", hidden);
      m.rms_norm("post_attention_layernorm", hidden);
    });
  });
}

Model build_llama4(const ModelConfig& c, const BuildOptions& options) {
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
  m.linear("multi_modal_projector.linear_1", v.count({"vision_output_dim"}, 7680),
           text.facts.hidden);
  return joined(m.build(), std::move(text));
}

}  // namespace shardplan
