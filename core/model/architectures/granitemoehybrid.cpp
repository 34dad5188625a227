// Granite 4 (models/granitemoehybrid): layers of Mamba 2 with attention among them, experts beside
// a feed-forward for all tokens, or that alone. Its dense models are of this type too: all layers
// attend and there are no experts. The one before it (models/granitemoeshared) always attends.
#include <fmt/format.h>

#include <optional>

#include "model/architectures/architectures.h"
#include "model/layers/rotary_attention.h"
#include "model/layers/scan_kernels.h"
#include "model/layers/sparse_mlp.h"
#include "model/layers/state_space.h"

namespace shardplan {
namespace {

struct Granite4 {
  std::int64_t hidden = 0, layers = 0;
  std::int64_t shared_ffn = 0;  ///< of the feed-forward for all tokens
  bool attention_bias = false;
  bool mixer_last = true;  ///< registered behind norms and feed-forward
  AttentionShape attention;
  StateSpaceShape mixer;
  SparseMlpShape sparse;  ///< no experts: none
  Activation activation = Activation::silu;
  std::vector<bool> attends;  ///< by layer
};

struct Granite4Layer {
  std::optional<RotaryAttention> attention;
  StateSpace mixer;
  NormModule before, after;
  std::optional<SparseMlp> sparse;
  FusedGatedMlp shared;
};

/// "layer_types", by their names of today or those of the published files; without it all are
/// state spaces.
std::vector<bool> granite_attends(const ModelConfig& c, std::int64_t layers) {
  const char* key = c.has("layer_types") ? "layer_types" : "layers_block_type";
  const std::vector<std::string> types = c.texts(key);
  std::vector<bool> attends(static_cast<std::size_t>(layers), false);
  if (types.empty()) return attends;
  if (std::ssize(types) != layers)
    c.fail(key, fmt::format("{} entries", types.size()),
           fmt::format("one for each of the {} layers", layers));
  for (std::size_t i = 0; i < types.size(); ++i) {
    attends[i] = types[i] == "attention" || types[i] == "full_attention";
    if (!attends[i] && types[i] != "mamba" && types[i] != "linear_attention")
      c.fail(key, fmt::format("unknown layer type '{}'", types[i]), "attention or mamba");
  }
  return attends;
}

/// What both types have.
Granite4 read_granite4(const ModelConfig& c, const BuildOptions& options) {
  Granite4 n;
  n.hidden = c.count({"hidden_size"}, 4096);
  n.layers = c.count({"num_hidden_layers"}, 32);
  n.attention_bias = c.flag("attention_bias", false);
  n.activation = read_activation(c, "hidden_act", "silu");
  AttentionShape& a = n.attention;
  a.heads = c.count({"num_attention_heads"}, 32);
  a.kv_heads = c.nullable_count("num_key_value_heads", a.heads).value_or(a.heads);
  c.require_divisible("num_attention_heads", a.heads, "num_key_value_heads", a.kv_heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", n.hidden, "num_attention_heads", a.heads);
  a.head_dim = head_dim.value_or(n.hidden / a.heads);
  a.dropout = c.number("attention_dropout", 0.0);
  n.sparse = {.hidden = n.hidden,
              .experts = c.count_or_zero("num_local_experts", 8),
              .ffn = c.count({"intermediate_size"}, 11008),
              .score = RouterScore::softmax_of_chosen,
              .block = "block_sparse_moe",
              .router = "router"};
  if (!options.counts_only && n.sparse.experts > 0)
    n.sparse.top_k = experts_per_token(c, "num_experts_per_tok", 2, n.sparse.experts);
  return n;
}

StateSpaceShape read_mixer(const ModelConfig& c, std::int64_t hidden) {
  StateSpaceShape s;
  s.name = "mamba";
  s.hidden = hidden;
  s.heads = c.count({"mamba_n_heads"}, 128);
  s.inner = checked_mul(c.count({"mamba_expand"}, 2), hidden);
  s.groups = c.count({"mamba_n_groups"}, 1);
  s.state = c.count({"mamba_d_state"}, 256);
  s.kernel = c.count({"mamba_d_conv"}, 4);
  s.chunk = c.count({"mamba_chunk_size"}, 256);
  s.conv_bias = c.flag("mamba_conv_bias", true);
  s.in_bias = s.out_bias = c.flag("mamba_proj_bias", false);
  return s;
}

Granite4Layer declare_granite4(ModelBuilder& m, const ModelConfig& c, const Granite4& n,
                               bool attends) {
  Granite4Layer l;
  const auto declare_mixer = [&] {
    if (attends)
      l.attention = rotary_attention(m, n.hidden, n.attention, n.attention_bias, n.attention_bias);
    else
      l.mixer = state_space(m, c, n.mixer);
  };
  if (!n.mixer_last) declare_mixer();
  l.before = m.rms_norm("input_layernorm", n.hidden);
  l.after = m.rms_norm("post_attention_layernorm", n.hidden);
  if (n.sparse.experts > 0) l.sparse = sparse_mlp(m, n.sparse);
  if (n.shared_ffn > 0)
    l.shared = {m.linear("shared_mlp.input_linear", n.hidden, checked_mul(2, n.shared_ffn)),
                m.linear("shared_mlp.output_linear", n.shared_ffn, n.hidden)};
  if (n.mixer_last) declare_mixer();
  return l;
}

ValueId granite4_feed_forward(Graph& g, const Granite4& n, const Granite4Layer& l, ValueId x) {
  const ValueId chosen = l.sparse ? apply(g, *l.sparse, n.activation, x) : kNone;
  if (n.shared_ffn == 0) return chosen;
  const ValueId shared = fused_gated_mlp(g, l.shared, n.activation, x);
  return l.sparse ? g.map(OpKind::add, chosen, shared) : shared;
}

ValueId granite4_layer(Graph& g, const ModelBuilder& m, const Granite4& n, const Granite4Layer& l,
                       const Positions& at, ValueId x) {
  const ValueId n1 = rms_norm(g, l.before, x);
  const ValueId mixed = l.attention ? apply(g, *l.attention, m.options().attention, at, n1)
                                    : apply(g, m, l.mixer, n1);
  const ValueId middle = g.map(OpKind::add, x, g.map(OpKind::scalar, mixed));
  const ValueId n2 = rms_norm(g, l.after, middle);
  const ValueId fed = granite4_feed_forward(g, n, l, n2);
  return g.map(OpKind::add, middle, g.map(OpKind::scalar, fed));
}

Model build_granite4(const ModelConfig& c, const BuildOptions& options, const Granite4& n,
                     bool turns) {
  ModelBuilder m(options);
  m.facts() = {.hidden = n.hidden,
               .layers = n.layers,
               .vocabulary = c.count({"vocab_size"}, 32000),
               .max_positions = c.count_or_zero("max_position_embeddings", 2048),
               .attention_heads = n.attention.heads,
               .key_value_heads = n.attention.kv_heads,
               .undivided = true};
  const auto has_states = std::find(n.attends.begin(), n.attends.end(), false) != n.attends.end();
  if (has_states) note_state_kernels(m, "state spaces", "mamba_ssm and causal_conv1d");
  if (n.sparse.experts > 0) note_router_loss(m, c);
  const int sparse = n.sparse.experts > 0 ? kSparseLayer : 0;
  const DecoderStack stack{.hidden = n.hidden,
                           .vocabulary = m.facts().vocabulary,
                           .tied = c.flag("tie_word_embeddings", false),
                           .rotary_dim = turns ? n.attention.head_dim : 0,
                           .runs = layer_runs(n.layers,
                                              [&](std::int64_t i) {
                                                const bool attends =
                                                    n.attends[static_cast<std::size_t>(i)];
                                                return sparse | (attends ? kAttendingLayer : 0);
                                              }),
                           .attention = options.attention,
                           .scales_embedding = true,
                           .logits = LogitMap::scale};
  return build_decoder(
      m, stack,
      [&](ModelBuilder& b, int kind) {
        return declare_granite4(b, c, n, (kind & kAttendingLayer) != 0);
      },
      [&](Graph& g, const Granite4Layer& l, int, const Positions& at, ValueId x) {
        return granite4_layer(g, m, n, l, at, x);
      });
}

}  // namespace

Model build_granitemoehybrid(const ModelConfig& c, const BuildOptions& options) {
  require_training(c, options, "state spaces");
  Granite4 n = read_granite4(c, options);
  n.shared_ffn = c.count({"shared_intermediate_size"}, 1024);
  n.mixer = read_mixer(c, n.hidden);
  n.attends = granite_attends(c, n.layers);
  return build_granite4(c, options, n, c.text("position_embedding_type", "") == "rope");
}

Model build_granitemoeshared(const ModelConfig& c, const BuildOptions& options) {
  require_training(c, options, "a feed-forward beside experts");
  Granite4 n = read_granite4(c, options);
  n.shared_ffn = c.count_or_zero("shared_intermediate_size", 0);
  n.mixer_last = false;
  n.attends.assign(static_cast<std::size_t>(n.layers), true);
  return build_granite4(c, options, n, true);
}

}  // namespace shardplan
