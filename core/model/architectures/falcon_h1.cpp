// Falcon-H1 (models/falcon_h1): attention and a state space side by side in every layer. Numbers
// multiply what goes into each part and what comes out of it, in operations of their own.
#include "model/architectures/architectures.h"
#include "model/layers/mlp.h"
#include "model/layers/rotary_attention.h"
#include "model/layers/scan_kernels.h"
#include "model/layers/state_space.h"

namespace shardplan {
namespace {

struct FalconH1 {
  std::int64_t hidden = 0, ffn = 0;
  bool attention_bias = false, mlp_bias = false;
  AttentionShape attention;
  StateSpaceShape mixer;
  Activation activation = Activation::silu;
};

struct FalconH1Layer {
  GatedMlp mlp;
  StateSpace mixer;
  RotaryAttention attention;
  NormModule before, after;
};

FalconH1 read_falcon_h1(const ModelConfig& c) {
  FalconH1 f;
  f.hidden = c.count({"hidden_size"}, 4096);
  f.ffn = c.count({"intermediate_size"}, 14336);
  AttentionShape& a = f.attention;
  a.heads = c.count({"num_attention_heads"}, 32);
  a.kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(a.heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", f.hidden, "num_attention_heads", a.heads);
  a.head_dim = head_dim.value_or(f.hidden / a.heads);
  a.dropout = c.number("attention_dropout", 0.0);
  f.attention_bias = c.flag("attention_bias", false);
  f.mlp_bias = c.flag("mlp_bias", false);
  f.activation = read_activation(c, "hidden_act", "silu");
  StateSpaceShape& s = f.mixer;
  s.name = "mamba";
  s.hidden = f.hidden;
  s.heads = c.count({"mamba_n_heads"}, 128);
  s.inner = c.nullable_count("mamba_d_ssm", 1024)
                .value_or(checked_mul(c.count({"mamba_expand"}, 2), f.hidden));
  s.groups = c.count({"mamba_n_groups"}, 1);
  s.state = c.count({"mamba_d_state"}, 256);
  s.kernel = c.count({"mamba_d_conv"}, 4);
  s.chunk = c.nullable_count("mamba_chunk_size", 256).value_or(256);
  s.conv_bias = c.flag("mamba_conv_bias", true);
  s.in_bias = c.flag("mamba_proj_bias", false);
  s.out_bias = c.flag("projectors_bias", false);
  s.norm = c.flag("mamba_rms_norm", false) ? GatedNorm::wide : GatedNorm::none;
  s.norm_groups = s.groups;
  s.gate_last = c.flag("mamba_norm_before_gate", true);
  s.multipliers = true;
  return f;
}

FalconH1Layer declare_falcon_h1(ModelBuilder& m, const ModelConfig& c, const FalconH1& f) {
  FalconH1Layer l;
  l.mlp = gated_mlp(m, "feed_forward", f.hidden, f.ffn, f.mlp_bias);
  l.mixer = state_space(m, c, f.mixer);
  l.attention = rotary_attention(m, f.hidden, f.attention, f.attention_bias, f.attention_bias);
  l.attention.scales_keys = true;
  l.before = m.rms_norm("input_layernorm", f.hidden);
  l.after = m.rms_norm("pre_ff_layernorm", f.hidden);
  return l;
}

ValueId falcon_h1_mlp(Graph& g, const FalconH1& f, const GatedMlp& mlp, ValueId x) {
  const ValueId up = apply(g, mlp.up, x);
  const ValueId gate = g.map(OpKind::scalar, apply(g, mlp.gate, x));
  const ValueId inner = g.map(OpKind::mul, up, activate(g, f.activation, gate));
  return g.map(OpKind::scalar, apply(g, mlp.down, inner));
}

}  // namespace

Model build_falcon_h1(const ModelConfig& c, const BuildOptions& options) {
  require_training(c, options, "state spaces");
  const FalconH1 f = read_falcon_h1(c);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 32);
  ModelBuilder m(options);
  m.facts() = {.hidden = f.hidden,
               .layers = layers,
               .vocabulary = c.count({"vocab_size"}, 128000),
               .max_positions = c.count_or_zero("max_position_embeddings", 8192),
               .attention_heads = f.attention.heads,
               .key_value_heads = f.attention.kv_heads,
               .undivided = true};
  note_state_kernels(m, "state spaces", "mamba_ssm and causal_conv1d");
  const DecoderStack stack{.hidden = f.hidden,
                           .vocabulary = m.facts().vocabulary,
                           .tied = c.flag("tie_word_embeddings", false),
                           .rotary_dim = f.attention.head_dim,
                           .runs = {{.start = 0, .count = layers}},
                           .attention = options.attention,
                           .final_norm = "model.final_layernorm",
                           .scales_embedding = true,
                           .logits = LogitMap::scale};
  return build_decoder(
      m, stack, [&](ModelBuilder& b, int) { return declare_falcon_h1(b, c, f); },
      [&](Graph& g, const FalconH1Layer& l, int, const Positions& at, ValueId x) {
        const ValueId n1 = rms_norm(g, l.before, x);
        const ValueId states = g.map(OpKind::scalar, apply(g, m, l.mixer, n1));
        const ValueId taken = g.map(OpKind::scalar, n1);
        const ValueId attended =
            g.map(OpKind::scalar, apply(g, l.attention, options.attention, at, taken));
        const ValueId mixed = g.map(OpKind::add, states, attended);
        const ValueId middle = g.map(OpKind::add, x, mixed);
        g.hold(n1, mixed);
        for (const ValueId v : {states, attended}) g.hold(v, middle);
        const ValueId fed = falcon_h1_mlp(g, f, l.mlp, rms_norm(g, l.after, middle));
        const ValueId out = g.map(OpKind::add, middle, fed);
        for (const ValueId v : {states, attended}) g.hold(v, out);
        return out;
      });
}

}  // namespace shardplan
