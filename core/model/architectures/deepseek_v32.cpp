// DeepSeek V3.2 (models/deepseek_v32) and GLM 5 (models/glm_moe_dsa): latent attention behind an
// indexer that picks the tokens to attend to.
#include "model/architectures/architectures.h"
#include "model/architectures/deepseek.h"
#include "model/layers/convolution.h"
#include "model/layers/experts.h"

namespace shardplan {
namespace {

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

/// What the two classes' defaults differ in.
struct IndexedDefaults {
  std::int64_t hidden, ffn, layers, heads, vocabulary, q_rank, nope, value, index_heads;
  bool shares;  ///< layers may take the choice of another
};

LatentShape read_latent(const ModelConfig& c, const IndexedDefaults& d) {
  return {.hidden = c.count({"hidden_size"}, d.hidden),
          .heads = c.count({"num_attention_heads"}, d.heads),
          .q_rank = c.count({"q_lora_rank"}, d.q_rank),
          .kv_rank = c.count({"kv_lora_rank"}, 512),
          .nope = c.count({"qk_nope_head_dim"}, d.nope),
          .rope = c.count({"qk_rope_head_dim"}, 64),
          .value = c.count({"v_head_dim"}, d.value),
          .bias = c.flag("attention_bias", false),
          .dropout = c.number("attention_dropout", 0.0)};
}

DeepSeek read_indexed(const ModelConfig& c, const IndexedDefaults& defaults) {
  DeepSeek d{};
  d.attention = read_latent(c, defaults);
  d.indexer = {.hidden = d.attention.hidden,
               .q_rank = *d.attention.q_rank,
               .heads = c.count({"index_n_heads"}, defaults.index_heads),
               .dim = c.count({"index_head_dim"}, 128),
               .rope = d.attention.rope,
               .chosen = c.count({"index_topk"}, 2048),
               .rotary = defaults.shares ? RotaryForm::interleaved : RotaryForm::half};
  if (d.indexer->dim < d.indexer->rope)
    c.fail("index_head_dim", "less than the columns that are turned", "at least qk_rope_head_dim");
  d.carries_choice = defaults.shares;
  d.ffn = c.count({"intermediate_size"}, defaults.ffn);
  d.expert_ffn = c.count({"moe_intermediate_size"}, 2048);
  d.experts = c.count({"n_routed_experts", "num_local_experts"}, 256);
  d.shared_ffn = checked_mul(d.expert_ffn, c.count({"n_shared_experts"}, 1));
  d.top_k = experts_per_token(c, "num_experts_per_tok", 8, d.experts);
  d.normalize = c.flag("norm_topk_prob", true);
  d.activation = read_activation(c, "hidden_act", "silu");
  return d;
}

Model build_indexed(const ModelConfig& c, const BuildOptions& options, const IndexedDefaults& d) {
  require_training(c, options, "layers that choose the keys of their attention");
  if (c.flag("mlp_bias", false)) c.fail("mlp_bias", "is not supported", "false");
  const DeepSeek network = read_indexed(c, d);
  const std::int64_t layers = c.count({"num_hidden_layers"}, d.layers);
  const std::vector<bool> sparse = sparse_mlps(c, layers);
  const std::vector<bool> indexes = d.shares
                                        ? indexing_layers(c, layers)
                                        : std::vector<bool>(static_cast<std::size_t>(layers), true);
  const auto kind_of = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return (sparse[at] ? kSparseLayer : 0) + (indexes[at] ? kIndexingLayer : 0);
  };
  const DecoderStack stack{.hidden = network.attention.hidden,
                           .vocabulary = c.count({"vocab_size"}, d.vocabulary),
                           .tied = c.flag("tie_word_embeddings", false),
                           .rotary_dim = network.attention.rope,
                           .runs = layer_runs(layers, kind_of),
                           .attention = options.attention};
  return build_deepseek(c, options, network, stack,
                        c.count_or_zero("max_position_embeddings", 163840));
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
