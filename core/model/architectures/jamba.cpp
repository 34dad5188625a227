// Jamba (models/jamba): layers of Mamba with attention among them, every other one with experts.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/layers/convolution.h"
#include "model/layers/experts.h"

namespace shardplan {
namespace {

struct Jamba {
  std::int64_t hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, experts = 0;
  std::int64_t inner = 0, state = 0, kernel = 0, rank = 0;
  bool conv_bias = true, bias = false;
};

/// Every `period`-th layer from `offset` on.
struct JambaPlaces {
  std::int64_t period = 1, offset = 0;
  bool has(std::int64_t layer) const { return layer % period == offset; }
};

Jamba read_jamba(const ModelConfig& c) {
  Jamba j;
  j.hidden = c.count({"hidden_size"}, 4096);
  j.ffn = c.count({"intermediate_size"}, 14336);
  j.heads = c.count({"num_attention_heads"}, 32);
  j.kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(j.heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", j.hidden, "num_attention_heads", j.heads);
  j.head_dim = head_dim.value_or(j.hidden / j.heads);
  j.experts = c.count({"num_experts", "num_local_experts"}, 16);
  j.inner = checked_mul(c.count({"mamba_expand"}, 2), j.hidden);
  j.state = c.count({"mamba_d_state"}, 16);
  j.kernel = c.count({"mamba_d_conv"}, 4);
  const bool automatic = !c.has("mamba_dt_rank") || c.is_text("mamba_dt_rank");
  j.rank = automatic ? ceil_div(j.hidden, 16) : c.count({"mamba_dt_rank"}, 256);
  j.conv_bias = c.flag("mamba_conv_bias", true);
  j.bias = c.flag("mamba_proj_bias", false);
  return j;
}

void jamba_mixer(ModelBuilder& m, const Jamba& j) {
  m.tensor("mamba.A_log", {j.inner, j.state}, ParameterKind::other);
  m.tensor("mamba.D", {j.inner}, ParameterKind::other);
  convolution1d(m, "mamba.conv1d", j.inner, j.kernel, j.conv_bias);
  m.linear("mamba.in_proj", j.hidden, 2 * j.inner, j.bias);
  m.linear("mamba.x_proj", j.inner, j.rank + 2 * j.state);
  m.linear("mamba.dt_proj", j.rank, j.inner, true);
  m.linear("mamba.out_proj", j.inner, j.hidden, j.bias);
  m.rms_norm("mamba.dt_layernorm", j.rank);
  m.rms_norm("mamba.b_layernorm", j.state);
  m.rms_norm("mamba.c_layernorm", j.state);
}

void jamba_layer(ModelBuilder& m, const Jamba& j, bool attends, bool sparse) {
  if (attends) {
    m.linear("self_attn.q_proj", j.hidden, j.heads * j.head_dim);
    m.linear("self_attn.k_proj", j.hidden, j.kv_heads * j.head_dim);
    m.linear("self_attn.v_proj", j.hidden, j.kv_heads * j.head_dim);
    m.linear("self_attn.o_proj", j.heads * j.head_dim, j.hidden);
  } else {
    jamba_mixer(m, j);
  }
  if (sparse) {
    router(m, "feed_forward.router", j.hidden, j.experts);
    experts(m, "feed_forward.experts", j.experts, j.hidden, j.ffn);
  } else {
    gated_mlp(m, "feed_forward", j.hidden, j.ffn);
  }
  m.rms_norm("input_layernorm", j.hidden);
  m.rms_norm("pre_ff_layernorm", j.hidden);
}

}  // namespace

Model build_jamba(const ModelConfig& c, const BuildOptions& options) {
  const Jamba j = read_jamba(c);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 32);
  const JambaPlaces attending{c.count({"attn_layer_period"}, 8),
                              c.count_or_zero("attn_layer_offset", 4)};
  const JambaPlaces sparse{c.count({"expert_layer_period"}, 2),
                           c.count_or_zero("expert_layer_offset", 1)};
  const ModelFacts facts{.layers = layers,
                         .max_positions = c.count_or_zero("max_position_embeddings", 262144),
                         .attention_heads = j.heads,
                         .key_value_heads = j.kv_heads};
  const CountedStack stack{.hidden = j.hidden,
                           .vocabulary = c.count({"vocab_size"}, 65536),
                           .tied = c.flag("tie_word_embeddings", false),
                           .norm = "model.final_layernorm"};
  const auto kind = [&](std::int64_t i) {
    return std::pair<bool, bool>(attending.has(i), j.experts > 1 && sparse.has(i));
  };
  return counted_decoder(options, facts, stack, [&](ModelBuilder& m) {
    register_layers(m, "model.layers", layers, kind,
                    [&](std::pair<bool, bool> of) { jamba_layer(m, j, of.first, of.second); });
  });
}

}  // namespace shardplan
