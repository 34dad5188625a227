// Qwen 3-Next (models/qwen3_next) and the text models of Qwen 3.5 (models/qwen3_5, qwen3_5_moe):
// three of four layers with a gated delta net in place of attention.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/decoder.h"
#include "model/layers/experts.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

struct DeltaNet {
  std::int64_t keys, values, value_heads, value_dim, kernel;
  bool joined_projections;  ///< Qwen 3-Next: q, k, v and z in one linear, b and a in another
};

struct NextShape {
  std::int64_t hidden, ffn, layers, heads, kv_heads, head_dim, vocab;
  std::int64_t experts = 0, expert_ffn = 0, shared_ffn = 0;
  bool bias = false, tied = false;
  DeltaNet delta{};
};

void register_delta_net(ModelBuilder& m, const NextShape& s) {
  const DeltaNet& d = s.delta;
  const std::int64_t mixed = 2 * d.keys + d.values;
  const std::string at = "linear_attn.";
  m.tensor(at + "dt_bias", {d.value_heads}, ParameterKind::other);
  m.tensor(at + "A_log", {d.value_heads}, ParameterKind::other);
  m.tensor(at + "conv1d.weight", {mixed, 1, d.kernel}, ParameterKind::other);
  if (d.joined_projections) {
    m.linear(at + "in_proj_qkvz", s.hidden, mixed + d.values);
    m.linear(at + "in_proj_ba", s.hidden, 2 * d.value_heads);
    m.rms_norm(at + "norm", d.value_dim);
    m.linear(at + "out_proj", d.values, s.hidden);
    return;
  }
  m.rms_norm(at + "norm", d.value_dim);
  m.linear(at + "out_proj", d.values, s.hidden);
  m.linear(at + "in_proj_qkv", s.hidden, mixed);
  m.linear(at + "in_proj_z", s.hidden, d.values);
  m.linear(at + "in_proj_b", s.hidden, d.value_heads);
  m.linear(at + "in_proj_a", s.hidden, d.value_heads);
}

/// The queries' projection makes the output gate too.
void register_attention(ModelBuilder& m, const NextShape& s) {
  m.linear("self_attn.q_proj", s.hidden, 2 * s.heads * s.head_dim, s.bias);
  m.linear("self_attn.k_proj", s.hidden, s.kv_heads * s.head_dim, s.bias);
  m.linear("self_attn.v_proj", s.hidden, s.kv_heads * s.head_dim, s.bias);
  m.linear("self_attn.o_proj", s.heads * s.head_dim, s.hidden, s.bias);
  m.rms_norm("self_attn.q_norm", s.head_dim);
  m.rms_norm("self_attn.k_norm", s.head_dim);
}

void register_mlp(ModelBuilder& m, const NextShape& s, bool sparse) {
  if (!sparse) {
    gated_mlp(m, "mlp", s.hidden, s.ffn);
    return;
  }
  router(m, "mlp.gate", s.hidden, s.experts);
  experts(m, "mlp.experts", s.experts, s.hidden, s.expert_ffn);
  gated_mlp(m, "mlp.shared_expert", s.hidden, s.shared_ffn);
  m.linear("mlp.shared_expert_gate", s.hidden, 1);
}

/// Which layers attend: "layer_types", or every n-th.
std::vector<bool> attending_layers(const ModelConfig& c, std::int64_t layers) {
  std::vector<bool> full;
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty() && std::ssize(types) != layers)
    c.fail("layer_types", "not one entry for each layer", "one for each layer");
  const std::int64_t interval = c.count({"full_attention_interval"}, 4);
  for (std::int64_t i = 0; i < layers; ++i)
    full.push_back(types.empty() ? (i + 1) % interval == 0
                                 : types[static_cast<std::size_t>(i)] == "full_attention");
  return full;
}

NextShape read_next(const ModelConfig& c, const NextShape& d) {
  NextShape s = d;
  s.hidden = c.count({"hidden_size"}, d.hidden);
  s.ffn = c.count({"intermediate_size"}, d.ffn);
  s.layers = c.count({"num_hidden_layers"}, d.layers);
  s.heads = c.count({"num_attention_heads"}, d.heads);
  s.kv_heads = c.count({"num_key_value_heads"}, d.kv_heads);
  s.head_dim = c.count({"head_dim"}, d.head_dim);
  s.vocab = c.count({"vocab_size"}, d.vocab);
  s.bias = c.flag("attention_bias", false);
  s.tied = c.flag("tie_word_embeddings", false);
  s.delta.value_heads = c.count({"linear_num_value_heads"}, 32);
  s.delta.value_dim = c.count({"linear_value_head_dim"}, 128);
  s.delta.values = checked_mul(s.delta.value_heads, s.delta.value_dim);
  s.delta.keys =
      checked_mul(c.count({"linear_num_key_heads"}, 16), c.count({"linear_key_head_dim"}, 128));
  s.delta.kernel = c.count({"linear_conv_kernel_dim"}, 4);
  if (d.experts > 0) {
    s.experts = c.count({"num_experts"}, d.experts);
    s.expert_ffn = c.count({"moe_intermediate_size"}, 512);
    s.shared_ffn = c.count({"shared_expert_intermediate_size"}, 512);
  }
  return s;
}

Model build_next(const ModelConfig& c, const BuildOptions& options, const NextShape& s,
                 const std::vector<bool>& sparse) {
  const std::vector<bool> full = attending_layers(c, s.layers);
  const ModelFacts facts{.layers = s.layers,
                         .max_positions = c.count_or_zero("max_position_embeddings", 32768),
                         .attention_heads = s.heads,
                         .key_value_heads = s.kv_heads};
  const CountedStack stack{.hidden = s.hidden, .vocabulary = s.vocab, .tied = s.tied};
  return counted_decoder(options, facts, stack, [&](ModelBuilder& m) {
    const auto kind = [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      return std::pair<bool, bool>(full[at], sparse[at]);
    };
    register_layers(m, "model.layers", s.layers, kind, [&](std::pair<bool, bool> layer) {
      if (layer.first) {
        register_attention(m, s);
      } else {
        register_delta_net(m, s);
      }
      register_mlp(m, s, layer.second);
      m.rms_norm("input_layernorm", s.hidden);
      m.rms_norm("post_attention_layernorm", s.hidden);
    });
  });
}

std::vector<bool> all(std::int64_t layers, bool sparse) {
  return std::vector<bool>(static_cast<std::size_t>(layers), sparse);
}

}  // namespace

Model build_qwen3_next(const ModelConfig& c, const BuildOptions& options) {
  NextShape d{.hidden = 2048,
              .ffn = 5632,
              .layers = 48,
              .heads = 16,
              .kv_heads = 2,
              .head_dim = 256,
              .vocab = 151936,
              .experts = 512};
  d.delta.joined_projections = true;
  const NextShape s = read_next(c, d);
  return build_next(c, options, s, read_sparse_layers(c, s.layers));
}

Model build_qwen3_5_text(const ModelConfig& c, const BuildOptions& options) {
  const NextShape s = read_next(c, {.hidden = 4096,
                                    .ffn = 12288,
                                    .layers = 32,
                                    .heads = 16,
                                    .kv_heads = 4,
                                    .head_dim = 256,
                                    .vocab = 248320});
  return build_next(c, options, s, all(s.layers, false));
}

Model build_qwen3_5_moe_text(const ModelConfig& c, const BuildOptions& options) {
  const NextShape s = read_next(c, {.hidden = 2048,
                                    .ffn = 512,
                                    .layers = 40,
                                    .heads = 16,
                                    .kv_heads = 2,
                                    .head_dim = 256,
                                    .vocab = 248320,
                                    .experts = 256});
  return build_next(c, options, s, all(s.layers, true));
}

}  // namespace shardplan
