// DeepSeek-V2 (models/deepseek_v2) and V3, R1 (models/deepseek_v3): latent attention, shared
// experts, the first layers dense.
#include "model/architectures/architectures.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/experts.h"
#include "model/layers/latent_attention.h"

namespace shardplan {
namespace {

enum class Version : std::uint8_t { v2, v3 };

struct DeepSeek {
  Version version;
  std::int64_t ffn, expert_ffn, shared_ffn, experts, top_k;
  bool normalize, mlp_bias;
  RotaryForm rotary;
  LatentShape attention;
  Activation activation;
};

struct DeepseekLayer {
  LatentAttention attention;
  Experts experts;
  LinearModule gate;
  GatedMlp mlp;  ///< the shared experts of a sparse layer, or the dense block
  NormModule norm1, norm2;
};

DeepseekLayer declare(ModelBuilder& m, const DeepSeek& d, bool sparse) {
  const std::int64_t hidden = d.attention.hidden;
  DeepseekLayer l;
  l.attention = latent_attention(m, d.attention);
  if (sparse) {
    l.experts = experts(m, "mlp.experts", d.experts, hidden, d.expert_ffn);
    l.gate = router(m, "mlp.gate", hidden, d.experts);
    l.mlp = gated_mlp(m, "mlp.shared_experts", hidden, d.shared_ffn, d.mlp_bias);
  } else {
    l.mlp = gated_mlp(m, "mlp", hidden, d.ffn, d.mlp_bias);
  }
  l.norm1 = m.rms_norm("input_layernorm", hidden);
  l.norm2 = m.rms_norm("post_attention_layernorm", hidden);
  return l;
}

ValueId dense(Graph& g, const DeepseekLayer& l, const DeepSeek& d, ValueId x) {
  return gated_mlp(g, l.mlp, d.activation, x);
}

ValueId sparse(Graph& g, const DeepseekLayer& l, const DeepSeek& d, ValueId x) {
  const ValueId logits = f32_logits(g, l.gate, x);
  // Groups of experts (n_group) only mask scores; their tensors live inside the router.
  const OpKind score = d.version == Version::v2 ? OpKind::softmax_f32 : OpKind::sigmoid;
  ValueId weights = choose(g, g.map(score, logits), d.top_k);
  if (d.normalize) weights = normalize_rows(g, weights);
  weights = g.map(OpKind::scalar, weights);
  const ValueId chosen = apply(g, l.experts, ExpertGate::activation, d.activation, x, weights);
  const ValueId sum = g.map(OpKind::add, chosen, dense(g, l, d, x));
  g.hold(logits, sum);
  return sum;
}

Model build(const ModelConfig& c, const BuildOptions& options, const DeepSeek& d,
            const DecoderStack& stack) {
  ModelBuilder m(options);
  m.facts() = {.hidden = stack.hidden,
               .layers = stack.runs.back().start + stack.runs.back().count,
               .vocabulary = stack.vocabulary,
               .max_positions = c.count_or_zero("max_position_embeddings",
                                                d.version == Version::v2 ? 2048 : 4096),
               .attention_heads = d.attention.heads,
               .key_value_heads = d.attention.heads};
  note_router_loss(m, c);
  return build_decoder(
      m, stack, [&](ModelBuilder& b, bool is) { return declare(b, d, is); },
      [&](Graph& g, const DeepseekLayer& l, bool is, const Positions& at, ValueId x) {
        const ValueId mixed =
            apply(g, l.attention, options.attention, d.rotary, at, rms_norm(g, l.norm1, x));
        const ValueId middle = g.map(OpKind::add, x, mixed);
        const ValueId normal = rms_norm(g, l.norm2, middle);
        const ValueId delta = is ? sparse(g, l, d, normal) : dense(g, l, d, normal);
        g.name_until(normal, delta);
        return g.map(OpKind::add, middle, delta);
      });
}

/// The keys that both versions have, with the version's class defaults.
struct Defaults {
  std::int64_t hidden, ffn, expert_ffn, layers, heads, vocabulary, experts, shared, top_k, dense;
};

Model read_and_build(const ModelConfig& c, const BuildOptions& options, Version version,
                     const Defaults& def) {
  DeepSeek d{};
  d.version = version;
  LatentShape& a = d.attention;
  a.hidden = c.count({"hidden_size"}, def.hidden);
  a.heads = c.count({"num_attention_heads"}, def.heads);
  a.q_rank = c.nullable_count("q_lora_rank", 1536);  // null: no compression of the queries
  a.kv_rank = c.count({"kv_lora_rank"}, 512);
  a.nope = c.count({"qk_nope_head_dim"}, 128);
  a.rope = c.count({"qk_rope_head_dim"}, 64);
  a.value = c.count({"v_head_dim"}, 128);
  a.bias = c.flag("attention_bias", false);
  a.dropout = c.number("attention_dropout", 0.0);
  d.ffn = c.count({"intermediate_size"}, def.ffn);
  d.expert_ffn = c.count({"moe_intermediate_size"}, def.expert_ffn);
  d.experts = c.count({"n_routed_experts", "num_experts", "num_local_experts"}, def.experts);
  d.shared_ffn = checked_mul(d.expert_ffn, c.count({"n_shared_experts"}, def.shared));
  const auto top_k = c.optional_count({"num_experts_per_tok"});
  if (!top_k && def.top_k == 0)
    c.fail("num_experts_per_tok", "missing: the class has no default", "experts per token");
  d.top_k = top_k.value_or(def.top_k);
  if (d.top_k > d.experts)
    c.fail("num_experts_per_tok", "more experts per token than experts",
           "at most n_routed_experts");
  d.activation = read_activation(c, "hidden_act", "silu");
  d.normalize = version == Version::v3 && c.flag("norm_topk_prob", true);
  d.mlp_bias = version == Version::v2 && c.flag("mlp_bias", false);
  d.rotary = RotaryForm::complex;
  if (version == Version::v3)
    d.rotary = c.flag("rope_interleave", true) ? RotaryForm::interleaved : RotaryForm::half;
  const std::int64_t first_sparse = c.count_or_zero("first_k_dense_replace", def.dense);
  const DecoderStack stack{.hidden = a.hidden,
                           .vocabulary = c.count({"vocab_size"}, def.vocabulary),
                           .tied = c.flag("tie_word_embeddings", false),
                           .rotary_dim = a.rope,
                           .rotary_f32 = version == Version::v2,
                           .runs = layer_runs(c.count({"num_hidden_layers"}, def.layers),
                                              [&](std::int64_t i) { return i >= first_sparse; }),
                           .attention = options.attention};
  return build(c, options, d, stack);
}

}  // namespace

Model build_deepseek_v2(const ModelConfig& c, const BuildOptions& options) {
  return read_and_build(c, options, Version::v2,
                        {.hidden = 4096,
                         .ffn = 11008,
                         .expert_ffn = 1407,
                         .layers = 32,
                         .heads = 32,
                         .vocabulary = 102400,
                         .experts = 64,
                         .shared = 2,
                         .top_k = 0,
                         .dense = 0});
}

Model build_deepseek_v3(const ModelConfig& c, const BuildOptions& options) {
  return read_and_build(c, options, Version::v3,
                        {.hidden = 7168,
                         .ffn = 18432,
                         .expert_ffn = 2048,
                         .layers = 61,
                         .heads = 128,
                         .vocabulary = 129280,
                         .experts = 256,
                         .shared = 1,
                         .top_k = 8,
                         .dense = 3});
}

}  // namespace shardplan
