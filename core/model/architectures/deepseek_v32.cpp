// DeepSeek V3.2 (models/deepseek_v32) and GLM 5 (models/glm_moe_dsa): latent attention behind an
// indexer that picks the tokens to attend to.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/layers/experts.h"
#include "model/layers/latent_attention.h"

namespace shardplan {
namespace {

struct SparseAttentionShape {
  LatentShape latent;
  std::int64_t index_heads, index_dim, ffn, expert_ffn, shared_ffn, experts, layers;
};

/// Which layers have an indexer of their own; the others take the choice of one before them.
std::vector<bool> indexing_layers(const ModelConfig& c, std::int64_t layers) {
  std::vector<bool> full;
  std::string pattern = c.is_list("index_topk_pattern") ? "" : c.text("index_topk_pattern", "");
  for (const char* key : {"indexer_types", "index_topk_pattern"})
    if (full.empty() && c.is_list(key))
      for (const std::string& type : c.texts(key)) full.push_back(type == "full");
  if (full.empty())
    for (const char letter : pattern) full.push_back(letter == 'F');
  const std::int64_t every = std::max<std::int64_t>(c.count_or_zero("index_topk_freq", 1), 1);
  const std::int64_t offset = c.count_or_zero("index_skip_topk_offset", 2);
  if (full.empty())
    for (std::int64_t i = 0; i < layers; ++i)
      full.push_back(std::max<std::int64_t>(i - offset + 1, 0) % every == 0);
  if (std::ssize(full) != layers)
    c.fail("indexer_types", "not one entry for each layer", "one for each layer");
  return full;
}

/// "mlp_layer_types", or dense layers first.
std::vector<bool> sparse_mlps(const ModelConfig& c, std::int64_t layers) {
  std::vector<bool> sparse;
  for (const std::string& type : c.texts("mlp_layer_types")) sparse.push_back(type == "sparse");
  const std::int64_t dense = c.count_or_zero("first_k_dense_replace", 3);
  if (sparse.empty())
    for (std::int64_t i = 0; i < layers; ++i) sparse.push_back(i >= dense);
  if (std::ssize(sparse) != layers)
    c.fail("mlp_layer_types", "not one entry for each layer", "one for each layer");
  return sparse;
}

void register_indexed_layer(ModelBuilder& m, const SparseAttentionShape& s, bool indexes,
                            bool sparse) {
  const std::int64_t hidden = s.latent.hidden;
  latent_attention(m, s.latent);
  if (indexes) {
    const std::string at = "self_attn.indexer.";
    m.linear(at + "wq_b", s.latent.q_rank.value_or(hidden), s.index_heads * s.index_dim);
    m.linear(at + "wk", hidden, s.index_dim);
    m.layer_norm(at + "k_norm", s.index_dim);
    m.linear(at + "weights_proj", hidden, s.index_heads);
  }
  if (sparse) {
    experts(m, "mlp.experts", s.experts, hidden, s.expert_ffn);
    router(m, "mlp.gate", hidden, s.experts);
    gated_mlp(m, "mlp.shared_experts", hidden, s.shared_ffn);
  } else {
    gated_mlp(m, "mlp", hidden, s.ffn);
  }
  m.rms_norm("input_layernorm", hidden);
  m.rms_norm("post_attention_layernorm", hidden);
}

/// What the two classes' defaults differ in.
struct IndexedDefaults {
  std::int64_t hidden, ffn, layers, heads, vocabulary, q_rank, nope, value, index_heads;
  bool shares;  ///< layers may take the choice of another
};

Model build_indexed(const ModelConfig& c, const BuildOptions& options, const IndexedDefaults& d) {
  SparseAttentionShape s{};
  LatentShape& a = s.latent;
  a.hidden = c.count({"hidden_size"}, d.hidden);
  a.heads = c.count({"num_attention_heads"}, d.heads);
  a.q_rank = c.count({"q_lora_rank"}, d.q_rank);
  a.kv_rank = c.count({"kv_lora_rank"}, 512);
  a.nope = c.count({"qk_nope_head_dim"}, d.nope);
  a.rope = c.count({"qk_rope_head_dim"}, 64);
  a.value = c.count({"v_head_dim"}, d.value);
  a.bias = c.flag("attention_bias", false);
  s.layers = c.count({"num_hidden_layers"}, d.layers);
  s.index_heads = c.count({"index_n_heads"}, d.index_heads);
  s.index_dim = c.count({"index_head_dim"}, 128);
  s.ffn = c.count({"intermediate_size"}, d.ffn);
  s.expert_ffn = c.count({"moe_intermediate_size"}, 2048);
  s.experts = c.count({"n_routed_experts", "num_local_experts"}, 256);
  s.shared_ffn = checked_mul(s.expert_ffn, c.count({"n_shared_experts"}, 1));
  if (c.flag("mlp_bias", false)) c.fail("mlp_bias", "is not supported", "false");
  const std::vector<bool> sparse = sparse_mlps(c, s.layers);
  const std::vector<bool> indexes =
      d.shares ? indexing_layers(c, s.layers)
               : std::vector<bool>(static_cast<std::size_t>(s.layers), true);
  const ModelFacts facts{.layers = s.layers,
                         .max_positions = c.count_or_zero("max_position_embeddings", 163840),
                         .attention_heads = a.heads,
                         .key_value_heads = a.heads};
  const CountedStack stack{.hidden = a.hidden,
                           .vocabulary = c.count({"vocab_size"}, d.vocabulary),
                           .tied = c.flag("tie_word_embeddings", false)};
  return counted_decoder(options, facts, stack, [&](ModelBuilder& m) {
    const auto kind = [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      return std::pair<bool, bool>(indexes[at], sparse[at]);
    };
    register_layers(m, "model.layers", s.layers, kind, [&](std::pair<bool, bool> layer) {
      register_indexed_layer(m, s, layer.first, layer.second);
    });
  });
}

}  // namespace

Model build_deepseek_v32(const ModelConfig& c, const BuildOptions& options) {
  return build_indexed(c, options,
                       {.hidden = 7168,
                        .ffn = 18432,
                        .layers = 61,
                        .heads = 128,
                        .vocabulary = 129280,
                        .q_rank = 1536,
                        .nope = 128,
                        .value = 128,
                        .index_heads = 64,
                        .shares = false});
}

Model build_glm_moe_dsa(const ModelConfig& c, const BuildOptions& options) {
  return build_indexed(c, options,
                       {.hidden = 6144,
                        .ffn = 12288,
                        .layers = 78,
                        .heads = 64,
                        .vocabulary = 154880,
                        .q_rank = 2048,
                        .nope = 192,
                        .value = 256,
                        .index_heads = 32,
                        .shares = true});
}

}  // namespace shardplan
