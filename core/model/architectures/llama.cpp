// Llama 1 to 3 and everything that ships as model_type "llama" (models/llama).
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

struct LlamaConfig {
  std::int64_t hidden, ffn, layers, heads, kv_heads, head_dim, vocab;
  bool attention_bias, mlp_bias, tied;
  double attention_dropout;
};

LlamaConfig read(const ModelConfig& c) {
  LlamaConfig l{};
  l.hidden = c.count({"hidden_size"}, 4096);
  l.ffn = c.count({"intermediate_size"}, 11008);
  l.layers = c.count({"num_hidden_layers"}, 32);
  l.heads = c.count({"num_attention_heads"}, 32);
  l.kv_heads = c.count({"num_key_value_heads"}, l.heads);
  c.require_divisible("num_attention_heads", l.heads, "num_key_value_heads", l.kv_heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", l.hidden, "num_attention_heads", l.heads);
  l.head_dim = head_dim.value_or(l.hidden / l.heads);
  l.vocab = c.count({"vocab_size"}, 32000);
  l.attention_bias = c.flag("attention_bias", false);
  l.mlp_bias = c.flag("mlp_bias", false);
  l.tied = c.flag("tie_word_embeddings", false);
  l.attention_dropout = c.number("attention_dropout", 0.0);
  return l;
}

}  // namespace

Model build_llama(const ModelConfig& config, const BuildOptions& options) {
  const LlamaConfig c = read(config);
  ModelBuilder m(options);
  m.facts() = {.hidden = c.hidden,
               .layers = c.layers,
               .vocabulary = c.vocab,
               .max_positions = config.count_or_zero("max_position_embeddings", 0),
               .attention_heads = c.heads,
               .key_value_heads = c.kv_heads};

  const auto embed = m.embedding("model.embed_tokens", c.vocab, c.hidden);
  m.begin_repeat("model.layers", c.layers);
  const std::int64_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  const auto q_proj = m.linear("self_attn.q_proj", c.hidden, q_width, c.attention_bias);
  const auto k_proj = m.linear("self_attn.k_proj", c.hidden, kv_width, c.attention_bias);
  const auto v_proj = m.linear("self_attn.v_proj", c.hidden, kv_width, c.attention_bias);
  const auto o_proj = m.linear("self_attn.o_proj", q_width, c.hidden, c.attention_bias);
  const auto mlp = gated_mlp(m, "mlp", c.hidden, c.ffn, c.mlp_bias);
  const auto norm1 = m.rms_norm("input_layernorm", c.hidden);
  const auto norm2 = m.rms_norm("post_attention_layernorm", c.hidden);
  m.end_repeat();
  const auto norm = m.rms_norm("model.norm", c.hidden);
  const auto head =
      c.tied ? m.tied_linear("lm_head", embed) : m.linear("lm_head", c.hidden, c.vocab);

  Graph& e = m.begin_segment("embedding");
  e.set_output(apply(e, embed, Scale::tokens));
  const RotaryTables tables = share_rotary(m, c.head_dim);

  Graph& g = m.begin_segment("layers", c.layers, true);
  const ValueId x = g.chained_input({c.hidden, Scale::tokens});
  const ValueId n1 = rms_norm(g, norm1, x);
  const ValueId q = rotate(g, tables, apply(g, q_proj, n1), c.heads, c.head_dim);
  const ValueId k = rotate(g, tables, apply(g, k_proj, n1), c.kv_heads, c.head_dim);
  const ValueId v = apply(g, v_proj, n1);
  const AttentionShape shape{.heads = c.heads,
                             .kv_heads = c.kv_heads,
                             .head_dim = c.head_dim,
                             .dropout = c.attention_dropout};
  const ValueId mixed = apply(g, o_proj, attention(g, options.attention, shape, q, k, v));
  const ValueId middle = g.map(OpKind::add, x, mixed);
  const ValueId delta = gated_mlp(g, mlp, OpKind::silu, rms_norm(g, norm2, middle));
  g.set_output(g.map(OpKind::add, middle, delta));

  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({c.hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, rms_norm(h, norm, last)));
  return m.build();
}

}  // namespace shardplan
