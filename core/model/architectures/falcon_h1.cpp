// Falcon-H1 (models/falcon_h1): attention and a state space side by side in every layer.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/layers/convolution.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

struct FalconH1 {
  std::int64_t hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t ssm_heads = 0, inner = 0, mixed = 0, kernel = 0;
  bool attention_bias = false, mlp_bias = false, conv_bias = true, in_bias = false,
       out_bias = false, normed = false;
};

FalconH1 read_falcon_h1(const ModelConfig& c) {
  FalconH1 f;
  f.hidden = c.count({"hidden_size"}, 4096);
  f.ffn = c.count({"intermediate_size"}, 14336);
  f.heads = c.count({"num_attention_heads"}, 32);
  f.kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(f.heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", f.hidden, "num_attention_heads", f.heads);
  f.head_dim = head_dim.value_or(f.hidden / f.heads);
  f.ssm_heads = c.count({"mamba_n_heads"}, 128);
  f.inner = c.nullable_count("mamba_d_ssm", 1024)
                .value_or(checked_mul(c.count({"mamba_expand"}, 2), f.hidden));
  f.mixed =
      f.inner + 2 * checked_mul(c.count({"mamba_n_groups"}, 1), c.count({"mamba_d_state"}, 256));
  f.kernel = c.count({"mamba_d_conv"}, 4);
  f.attention_bias = c.flag("attention_bias", false);
  f.mlp_bias = c.flag("mlp_bias", false);
  f.conv_bias = c.flag("mamba_conv_bias", true);
  f.in_bias = c.flag("mamba_proj_bias", false);
  f.out_bias = c.flag("projectors_bias", false);
  f.normed = c.flag("mamba_rms_norm", false);
  return f;
}

void falcon_h1_layer(ModelBuilder& m, const FalconH1& f) {
  gated_mlp(m, "feed_forward", f.hidden, f.ffn, f.mlp_bias);
  for (const char* name : {"dt_bias", "A_log", "D"})
    m.tensor(std::string("mamba.") + name, {f.ssm_heads}, ParameterKind::other);
  convolution1d(m, "mamba.conv1d", f.mixed, f.kernel, f.conv_bias);
  m.linear("mamba.in_proj", f.hidden, f.inner + f.mixed + f.ssm_heads, f.in_bias);
  if (f.normed) m.rms_norm("mamba.norm", f.inner);
  m.linear("mamba.out_proj", f.inner, f.hidden, f.out_bias);
  m.linear("self_attn.q_proj", f.hidden, f.heads * f.head_dim, f.attention_bias);
  m.linear("self_attn.k_proj", f.hidden, f.kv_heads * f.head_dim, f.attention_bias);
  m.linear("self_attn.v_proj", f.hidden, f.kv_heads * f.head_dim, f.attention_bias);
  m.linear("self_attn.o_proj", f.heads * f.head_dim, f.hidden, f.attention_bias);
  m.rms_norm("input_layernorm", f.hidden);
  m.rms_norm("pre_ff_layernorm", f.hidden);
}

}  // namespace

Model build_falcon_h1(const ModelConfig& c, const BuildOptions& options) {
  const FalconH1 f = read_falcon_h1(c);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 32);
  const ModelFacts facts{.layers = layers,
                         .max_positions = c.count_or_zero("max_position_embeddings", 8192),
                         .attention_heads = f.heads,
                         .key_value_heads = f.kv_heads};
  const CountedStack stack{.hidden = f.hidden,
                           .vocabulary = c.count({"vocab_size"}, 128000),
                           .tied = c.flag("tie_word_embeddings", false),
                           .norm = "model.final_layernorm"};
  return counted_decoder(options, facts, stack, [&](ModelBuilder& m) {
    m.begin_repeat("model.layers", layers);
    falcon_h1_layer(m, f);
    m.end_repeat();
  });
}

}  // namespace shardplan
