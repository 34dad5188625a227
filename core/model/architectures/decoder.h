// What the rotary decoder families have in common: embedding, layers of self-attention and MLP
// with norms around them, a final norm and a head. A family is a DecoderDescription.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/builder.h"
#include "model/config.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"
#include "model/layers/norms.h"
#include "model/layers/sparse_mlp.h"

namespace shardplan {

enum class NormPlace : std::uint8_t { before_attention, after_attention, before_mlp, after_mlp };

struct PlacedNorm {
  NormPlace place;
  std::string_view name;
};

/// Norms of queries and keys before they are rotated.
enum class QueryKeyNorm : std::uint8_t {
  none,
  each_head,      ///< one weight of head_dim elements for all heads
  each_head_own,  ///< a module for every head (StableLM)
  weight_rows,    ///< one weight [heads, head_dim] (Cohere)
  whole,          ///< over all heads together (OLMo 2)
};

/// When those norms run.
enum class HeadNormsAt : std::uint8_t {
  projection,  ///< each with its projection (Qwen 3)
  projected,   ///< both when queries, keys and values are made (Gemma 3)
  turned,      ///< both when queries and keys are rotated (Hunyuan)
};

enum class RotaryKind : std::uint8_t {
  halves,       ///< Llama: rotate_half over the rotary dims
  sliced,       ///< the same, always concatenated with the dims that pass through (Phi)
  interleaved,  ///< sliced, with tables interleaved anew in every layer (GLM-4)
  f32_tables,   ///< cos and sin stay in fp32, the result is cast back (OLMo 2)
  f32,          ///< q and k are upcast, the result is cast back (Cohere)
  f32_pairs,    ///< fp32 tables interleaved anew in every layer; both factors of the sum are upcast
                ///< (ERNIE 4.5)
};

enum class MlpKind : std::uint8_t { gated, fused_gated, plain };

/// Who multiplies what the embeddings look up by a number.
enum class EmbeddingScale : std::uint8_t {
  none,
  in_module,  ///< their own module (Gemma)
  in_model,   ///< the forward that calls it (Granite)
};

struct DecoderDescription {
  std::int64_t hidden = 0, ffn = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  std::int64_t max_positions = 0;
  std::vector<std::string> assumed;

  // Attention.
  bool fused_qkv = false;  ///< one linear "qkv_proj", registered after "o_proj" (Phi-3)
  bool qkv_bias = false, output_bias = false;
  std::string_view output_name = "o_proj";
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  NormKind query_key_kind = NormKind::rms;
  std::string_view query_norm = "q_norm", key_norm = "k_norm";
  bool query_key_norm_bias = false;
  HeadNormsAt head_norms_at = HeadNormsAt::projected;
  RotaryKind rotary = RotaryKind::halves;
  std::int64_t rotary_dim = 0;
  double attention_dropout = 0;
  bool score_softcap = false;
  std::int64_t window = 0;         ///< of the sliding layers
  std::vector<bool> sliding;       ///< by layer; empty: all of them, if there is a window
  bool tables_by_window = false;   ///< sliding layers rotate by tables of their own (Gemma 3)
  std::vector<bool> unturned;      ///< layers without rotary positions; empty: none
  bool scales_queries = false;     ///< by a factor of each position (Ministral 3)
  bool clips_projections = false;  ///< what q, k and v are made of is clamped (OLMo)

  // MLP.
  MlpKind mlp = MlpKind::gated;
  std::string_view up_name = "fc1", down_name = "fc2";  ///< of a plain MLP
  bool mlp_bias = false;
  std::optional<SparseMlpShape> sparse;  ///< in place of the MLP
  std::vector<bool> sparse_layers;       ///< by layer; empty: all of them
  Activation activation = Activation::silu;
  bool learned_activation = false;  ///< in its place one that trains, of a plain MLP (Apertus)

  // The layer.
  NormKind norm = NormKind::rms;
  std::vector<PlacedNorm> norms{{NormPlace::before_attention, "input_layernorm"},
                                {NormPlace::before_mlp, "post_attention_layernorm"}};
  bool mlp_after_norms = false;  ///< in the order of registration
  bool parallel = false;         ///< x + attention(n) + mlp(n) with one norm
  double attention_residual_dropout = 0, mlp_residual_dropout = 0;
  bool scales_residuals = false;  ///< what a sublayer adds is multiplied by a number (Granite)

  // Around the layers.
  EmbeddingScale embedding_scale = EmbeddingScale::none;
  double embedding_dropout = 0;
  bool learned_positions = false;  ///< a table of max_positions rows is added
  std::string_view final_norm = "norm";
  bool tied = false, head_bias = false;
  LogitMap logits = LogitMap::none;
};

/// Layers from `first` on are sparse.
void make_sparse_from(DecoderDescription& description, const SparseMlpShape& shape,
                      std::int64_t first);

/// Qwen's keys of sparse layers: every decoder_sparse_step-th but those of mlp_only_layers.
std::vector<bool> read_sparse_layers(const ModelConfig& config, std::int64_t layers);

/// The class defaults of the keys that all these families share.
struct DecoderDefaults {
  std::int64_t hidden = 4096, ffn = 11008, layers = 32, heads = 32;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  std::int64_t vocab = 32000, positions = 0;
  bool tied = false;
  bool reads_head_dim = true;  ///< false: the class always computes it
  std::string_view activation_key = "hidden_act", activation = "silu";
};

/// Reads the shared keys; the rest of the description is the family's to fill in.
DecoderDescription read_decoder(const ModelConfig& config, const DecoderDefaults& defaults);

/// "layer_types" as flags; empty when the file has none.
std::vector<bool> listed_sliding_layers(const ModelConfig& config, std::int64_t layers);

/// Which layers slide: the file's "layer_types", or else what `slides` says of layer i.
template <typename Slides>
std::vector<bool> sliding_layers(const ModelConfig& config, std::int64_t layers, Slides slides) {
  std::vector<bool> sliding = listed_sliding_layers(config, layers);
  if (sliding.empty())
    for (std::int64_t i = 0; i < layers; ++i) sliding.push_back(slides(i));
  return sliding;
}

/// int(head_dim · partial_rotary_factor), wherever the file has the factor.
std::int64_t partial_rotary_dim(const ModelConfig& config, std::int64_t head_dim, double fallback);

/// Families that others differ little from.
DecoderDescription read_olmo2(const ModelConfig& config);
DecoderDescription read_granite(const ModelConfig& config);
DecoderDescription read_glm(const ModelConfig& config);
DecoderDescription read_hunyuan(const ModelConfig& config);

Model build_decoder(const DecoderDescription& description, const BuildOptions& options);

}  // namespace shardplan
