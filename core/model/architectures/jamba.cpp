// Jamba (models/jamba): layers of Mamba with attention among them, every other one with experts.
// Nothing says where a token stands but the state.
#include <optional>

#include "model/architectures/architectures.h"
#include "model/layers/rotary_attention.h"
#include "model/layers/scan_kernels.h"
#include "model/layers/selective_scan.h"
#include "model/layers/sparse_mlp.h"

namespace shardplan {
namespace {

struct Jamba {
  std::int64_t hidden = 0, ffn = 0;
  AttentionShape attention;
  SelectiveScanShape mixer;
  SparseMlpShape sparse;
  Activation activation = Activation::silu;
};

struct JambaLayer {
  std::optional<RotaryAttention> attention;
  SelectiveScan mixer;
  std::optional<SparseMlp> sparse;
  GatedMlp mlp;
  NormModule before, after;
};

/// Every `period`-th layer from `offset` on.
struct JambaPlaces {
  std::int64_t period = 1, offset = 0;
  bool has(std::int64_t layer) const { return layer % period == offset; }
};

Jamba read_jamba(const ModelConfig& c, const BuildOptions& options) {
  Jamba j;
  j.hidden = c.count({"hidden_size"}, 4096);
  j.ffn = c.count({"intermediate_size"}, 14336);
  j.activation = read_activation(c, "hidden_act", "silu");
  AttentionShape& a = j.attention;
  a.heads = c.count({"num_attention_heads"}, 32);
  a.kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(a.heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", j.hidden, "num_attention_heads", a.heads);
  a.head_dim = head_dim.value_or(j.hidden / a.heads);
  a.dropout = c.number("attention_dropout", 0.0);
  j.sparse = {.hidden = j.hidden,
              .experts = c.count({"num_experts", "num_local_experts"}, 16),
              .ffn = j.ffn,
              .block = "feed_forward",
              .router = "router",
              .router_is = RouterIs::linear};
  if (!options.counts_only)
    j.sparse.top_k = experts_per_token(c, "num_experts_per_tok", 2, j.sparse.experts);
  SelectiveScanShape& s = j.mixer;
  s.name = "mamba";
  s.hidden = j.hidden;
  s.inner = checked_mul(c.count({"mamba_expand"}, 2), j.hidden);
  s.state = c.count({"mamba_d_state"}, 16);
  s.kernel = c.count({"mamba_d_conv"}, 4);
  s.rank = time_step_rank(c, "mamba_dt_rank", j.hidden, 256);
  s.conv_bias = c.flag("mamba_conv_bias", true);
  s.bias = c.flag("mamba_proj_bias", false);
  s.norms = true;
  return j;
}

JambaLayer declare_jamba(ModelBuilder& m, const Jamba& j, int kind) {
  JambaLayer l;
  if ((kind & kAttendingLayer) != 0)
    l.attention = rotary_attention(m, j.hidden, j.attention, false, false);
  else
    l.mixer = selective_scan(m, j.mixer);
  if ((kind & kSparseLayer) != 0)
    l.sparse = sparse_mlp(m, j.sparse);
  else
    l.mlp = gated_mlp(m, "feed_forward", j.hidden, j.ffn);
  l.before = m.rms_norm("input_layernorm", j.hidden);
  l.after = m.rms_norm("pre_ff_layernorm", j.hidden);
  return l;
}

}  // namespace

Model build_jamba(const ModelConfig& c, const BuildOptions& options) {
  require_training(c, options, "state spaces");
  const Jamba j = read_jamba(c, options);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 32);
  const JambaPlaces attending{c.count({"attn_layer_period"}, 8),
                              c.count_or_zero("attn_layer_offset", 4)};
  const JambaPlaces sparse{c.count({"expert_layer_period"}, 2),
                           c.count_or_zero("expert_layer_offset", 1)};
  ModelBuilder m(options);
  m.facts() = {.hidden = j.hidden,
               .layers = layers,
               .vocabulary = c.count({"vocab_size"}, 65536),
               .max_positions = c.count_or_zero("max_position_embeddings", 262144),
               .attention_heads = j.attention.heads,
               .key_value_heads = j.attention.kv_heads,
               .undivided = true};
  note_state_kernels(m, "state spaces", "mamba_ssm and causal_conv1d");
  note_router_loss(m, c);
  const DecoderStack stack{
      .hidden = j.hidden,
      .vocabulary = m.facts().vocabulary,
      .tied = c.flag("tie_word_embeddings", false),
      .runs = layer_runs(layers,
                         [&](std::int64_t i) {
                           return (attending.has(i) ? kAttendingLayer : 0) |
                                  (j.sparse.experts > 1 && sparse.has(i) ? kSparseLayer : 0);
                         }),
      .attention = options.attention,
      .final_norm = "model.final_layernorm"};
  return build_decoder(
      m, stack, [&](ModelBuilder& b, int kind) { return declare_jamba(b, j, kind); },
      [&](Graph& g, const JambaLayer& l, int, const Positions& at, ValueId x) {
        const ValueId n1 = rms_norm(g, l.before, x);
        const ValueId mixed = l.attention ? apply(g, *l.attention, options.attention, at, n1)
                                          : apply(g, m, l.mixer, n1);
        const ValueId middle = g.map(OpKind::add, x, mixed);
        const ValueId n2 = rms_norm(g, l.after, middle);
        const ValueId fed = l.sparse ? apply(g, *l.sparse, j.activation, n2)
                                     : gated_mlp(g, l.mlp, j.activation, n2);
        return g.map(OpKind::add, middle, fed);
      });
}

}  // namespace shardplan
