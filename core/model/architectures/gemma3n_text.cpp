// The text model of Gemma 3n (models/gemma3n, model_type "gemma3n_text"): several streams of hidden
// states that every layer mixes (AltUp), an embedding for every layer, and keys and values that
// later layers take over. Counted: what AltUp keeps is not described. The whole network
// ("gemma3n") has a tower of timm, MobileNetV5, whose tensors its configuration does not say.
#include <vector>

#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

struct Gemma3n {
  std::int64_t hidden, layers, heads, kv_heads, head_dim, each, inputs, rank;
  bool bias;
};

void gemma3n_mixing(ModelBuilder& m, const Gemma3n& t) {
  m.tensor("altup.correct_output_scale", {t.hidden}, ParameterKind::other);
  m.linear("altup.correction_coefs", t.inputs, t.inputs);
  m.linear("altup.prediction_coefs", t.inputs, checked_mul(t.inputs, t.inputs));
  m.linear("altup.modality_router", t.hidden, t.inputs);
  m.rms_norm("altup.router_norm", t.hidden);
  m.linear("laurel.linear_left", t.hidden, t.rank);
  m.linear("laurel.linear_right", t.rank, t.hidden);
  m.rms_norm("laurel.post_laurel_norm", t.hidden);
}

void gemma3n_layer(ModelBuilder& m, const Gemma3n& t, std::int64_t ffn, bool borrows) {
  const std::int64_t width = t.heads * t.head_dim, grouped = t.kv_heads * t.head_dim;
  m.linear("self_attn.q_proj", t.hidden, width, t.bias);
  m.rms_norm("self_attn.q_norm", t.head_dim);
  if (!borrows) {
    m.linear("self_attn.k_proj", t.hidden, grouped, t.bias);
    m.linear("self_attn.v_proj", t.hidden, grouped, t.bias);
    m.rms_norm("self_attn.k_norm", t.head_dim);
  }
  m.linear("self_attn.o_proj", width, t.hidden, t.bias);
  gated_mlp(m, "mlp", t.hidden, ffn);
  for (const char* name : {"input_layernorm", "post_attention_layernorm",
                           "pre_feedforward_layernorm", "post_feedforward_layernorm"})
    m.rms_norm(name, t.hidden);
  gemma3n_mixing(m, t);
  m.linear("per_layer_input_gate", t.hidden, t.each);
  m.linear("per_layer_projection", t.each, t.hidden);
  m.rms_norm("post_per_layer_input_norm", t.hidden);
}

/// intermediate_size: one number, or one for each layer.
std::vector<std::int64_t> widths_of(const ModelConfig& c, std::int64_t layers) {
  if (!c.is_list("intermediate_size"))
    return std::vector<std::int64_t>(static_cast<std::size_t>(layers),
                                     c.count({"intermediate_size"}, 16384));
  const std::vector<std::int64_t> listed = c.counts("intermediate_size");
  if (std::ssize(listed) != layers)
    c.fail("intermediate_size", "not one number for each layer", "one for each layer");
  return listed;
}

}  // namespace

Model build_gemma3n_text(const ModelConfig& c, const BuildOptions& options) {
  Gemma3n t{};
  t.hidden = c.count({"hidden_size"}, 2048);
  t.layers = c.count({"num_hidden_layers"}, 35);
  t.heads = c.count({"num_attention_heads"}, 8);
  t.kv_heads = c.count({"num_key_value_heads"}, 2);
  t.head_dim = c.count({"head_dim"}, 256);
  t.each = c.count({"hidden_size_per_layer_input"}, 256);
  t.inputs = c.count({"altup_num_inputs"}, 4);
  t.rank = c.count({"laurel_rank"}, 64);
  t.bias = c.flag("attention_bias", false);
  const std::int64_t vocab = c.count({"vocab_size"}, 262400);
  const std::int64_t first = t.layers - c.count_or_zero("num_kv_shared_layers", 15);
  const std::vector<std::int64_t> widths = widths_of(c, t.layers);
  ModelBuilder m(options);
  m.facts() = {.hidden = t.hidden,
               .layers = t.layers,
               .vocabulary = vocab,
               .max_positions = c.count_or_zero("max_position_embeddings", 32768),
               .attention_heads = t.heads,
               .key_value_heads = t.kv_heads};
  const auto words = m.embedding("model.embed_tokens", vocab, t.hidden);
  const auto kind = [&](std::int64_t i) {
    return std::pair<std::int64_t, bool>(widths[static_cast<std::size_t>(i)],
                                         first > 0 && i >= first);
  };
  register_layers(m, "model.layers", t.layers, kind, [&](std::pair<std::int64_t, bool> of) {
    gemma3n_layer(m, t, of.first, of.second);
  });
  m.rms_norm("model.norm", t.hidden);
  const std::int64_t all = checked_mul(t.layers, t.each);
  m.embedding("model.embed_tokens_per_layer", c.count({"vocab_size_per_layer_input"}, 262144), all);
  m.linear("model.per_layer_model_projection", t.hidden, all);
  m.rms_norm("model.per_layer_projection_norm", t.each);
  for (const char* list : {"model.altup_projections", "model.altup_unembed_projections"}) {
    if (t.inputs < 2) break;
    m.begin_repeat(list, t.inputs - 1);
    m.tensor("weight", {t.hidden, t.hidden}, ParameterKind::linear);
    m.end_repeat();
  }
  if (c.flag("tie_word_embeddings", true)) {
    m.tied_linear("lm_head", words);
  } else {
    m.linear("lm_head", t.hidden, vocab);
  }
  return m.build();
}

}  // namespace shardplan
