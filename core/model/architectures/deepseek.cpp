// DeepSeek-V2 (models/deepseek_v2), V3, R1 (models/deepseek_v3) and GLM-4.7-Flash, which has V3's
// attention and GLM-4.5's experts (models/glm4_moe_lite): the first layers are dense.
#include "model/architectures/deepseek.h"

#include <algorithm>

#include "model/architectures/architectures.h"
#include "model/layers/experts.h"

namespace shardplan {
namespace {

enum class Version : std::uint8_t { v2, v3 };

struct DeepseekLayer {
  LatentAttention attention;
  std::optional<KeyIndexer> indexer;
  Experts experts;
  LinearModule gate;
  GatedMlp mlp;  ///< the shared experts of a sparse layer, or the dense block
  NormModule norm1, norm2;
};

DeepseekLayer declare(ModelBuilder& m, const DeepSeek& d, int kind) {
  const std::int64_t hidden = d.attention.hidden;
  DeepseekLayer l;
  l.attention = latent_attention(m, d.attention);
  if ((kind & kIndexingLayer) != 0) l.indexer = key_indexer(m, *d.indexer);
  if ((kind & kSparseLayer) != 0) {
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
  const OpKind score = d.score == RouterScore::softmax_f32 ? OpKind::softmax_f32 : OpKind::sigmoid;
  ValueId weights = choose(g, g.map(score, logits), d.top_k);
  if (d.normalize) weights = normalize_rows(g, weights);
  weights = g.map(OpKind::scalar, weights);
  const ValueId chosen = apply(g, l.experts, ExpertGate::activation, d.activation, x, weights);
  const ValueId sum = g.map(OpKind::add, chosen, dense(g, l, d, x));
  g.hold(logits, sum);
  return sum;
}

/// The attention of a layer that has chosen keys, or takes an earlier layer's choice.
ValueId attend_to_chosen(Graph& g, const DeepseekLayer& l, const DeepSeek& d, AttentionKind kind,
                         const Positions& at, ValueId x) {
  const std::int64_t chosen = d.indexer->chosen;
  const ValueId carried = d.carries_choice ? carried_choice(g, chosen, x) : kNone;
  const LatentStates s = latent_states(g, l.attention, d.rotary, at, x);
  const ValueId choice =
      l.indexer ? choose_keys(g, *l.indexer, at.tables, x, s.compressed) : carried;
  const ValueId out = apply(
      g, l.attention.o, attention_to_chosen(g, kind, s.shape, s.queries, s.keys, s.values, choice));
  for (const ValueId local : s.locals) g.hold(local, out);
  for (const ValueId local : {choice, carried})
    if (local != kNone) g.hold(local, out);
  return out;
}

ValueId forward(Graph& g, const DeepseekLayer& l, const DeepSeek& d, AttentionKind kind,
                const Positions& at, ValueId x) {
  const ValueId first = rms_norm(g, l.norm1, x);
  const ValueId mixed = d.indexer ? attend_to_chosen(g, l, d, kind, at, first)
                                  : apply(g, l.attention, kind, d.rotary, at, first);
  const ValueId middle = g.map(OpKind::add, x, mixed);
  const ValueId normal = rms_norm(g, l.norm2, middle);
  const bool is_sparse = l.gate.weight != kNone;
  const ValueId delta = is_sparse ? sparse(g, l, d, normal) : dense(g, l, d, normal);
  g.hold(normal, delta);
  return g.map(OpKind::add, middle, delta);
}

/// The keys that both versions have, with the version's class defaults.
struct Defaults {
  std::int64_t hidden, ffn, expert_ffn, layers, heads, vocabulary, experts, shared, top_k, dense;
  std::int64_t q_rank = 1536, nope = 128, value = 128, positions = 4096;
};

/// Dense layers before the sparse ones: "mlp_layer_types" says each layer's, or their count.
std::int64_t dense_layers(const ModelConfig& c, std::int64_t usual) {
  const std::vector<std::string> types = c.texts("mlp_layer_types");
  if (types.empty()) return c.count_or_zero("first_k_dense_replace", usual);
  const auto sparse = std::ranges::find(types, "sparse");
  if (std::ranges::find(sparse, types.end(), "dense") != types.end())
    c.fail("mlp_layer_types", "a dense layer behind a sparse one", "dense layers first");
  return sparse - types.begin();
}

Model read_and_build(const ModelConfig& c, const BuildOptions& options, Version version,
                     const Defaults& def) {
  DeepSeek d{};
  d.score = version == Version::v2 ? RouterScore::softmax_f32 : RouterScore::sigmoid_f32;
  LatentShape& a = d.attention;
  a.hidden = c.count({"hidden_size"}, def.hidden);
  a.heads = c.count({"num_attention_heads"}, def.heads);
  a.q_rank = c.nullable_count("q_lora_rank", def.q_rank);  // null: no compression of the queries
  a.kv_rank = c.count({"kv_lora_rank"}, 512);
  a.nope = c.count({"qk_nope_head_dim"}, def.nope);
  a.rope = c.count({"qk_rope_head_dim"}, 64);
  a.value = c.count({"v_head_dim"}, def.value);
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
  const std::int64_t first_sparse = dense_layers(c, def.dense);
  const DecoderStack stack{
      .hidden = a.hidden,
      .vocabulary = c.count({"vocab_size"}, def.vocabulary),
      .tied = c.flag("tie_word_embeddings", false),
      .rotary_dim = a.rope,
      .rotary_f32 = version == Version::v2,
      .runs = layer_runs(c.count({"num_hidden_layers"}, def.layers),
                         [&](std::int64_t i) { return i >= first_sparse ? kSparseLayer : 0; }),
      .attention = options.attention};
  return build_deepseek(c, options, d, stack,
                        c.count_or_zero("max_position_embeddings", def.positions));
}

}  // namespace

Model build_deepseek(const ModelConfig& c, const BuildOptions& options, const DeepSeek& d,
                     const DecoderStack& stack, std::int64_t max_positions) {
  ModelBuilder m(options);
  m.facts() = {.hidden = stack.hidden,
               .layers = stack.runs.back().start + stack.runs.back().count,
               .vocabulary = stack.vocabulary,
               .max_positions = max_positions,
               .attention_heads = d.attention.heads,
               .key_value_heads = d.attention.heads,
               .undivided = d.indexer.has_value(),
               .supports_flash_attn = !d.indexer};
  note_router_loss(m, c);
  return build_decoder(
      m, stack, [&](ModelBuilder& b, int kind) { return declare(b, d, kind); },
      [&](Graph& g, const DeepseekLayer& l, int, const Positions& at, ValueId x) {
        return forward(g, l, d, options.attention, at, x);
      });
}

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
                         .dense = 0,
                         .positions = 2048});
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

Model build_glm4_moe_lite(const ModelConfig& c, const BuildOptions& options) {
  return read_and_build(c, options, Version::v3,
                        {.hidden = 2048,
                         .ffn = 10240,
                         .expert_ffn = 1536,
                         .layers = 47,
                         .heads = 20,
                         .vocabulary = 154880,
                         .experts = 64,
                         .shared = 1,
                         .top_k = 4,
                         .dense = 1,
                         .q_rank = 768,
                         .nope = 192,
                         .value = 256,
                         .positions = 202752});
}

}  // namespace shardplan
