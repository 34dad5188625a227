// Attention, as the modelling code of Hugging Face writes it.
#pragma once

#include "model/layers/basic.h"

namespace shardplan {

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;  ///< 0: head_dim; MLA has another
  Scale queries = Scale::tokens;
  Scale keys = Scale::tokens;
  double dropout = 0;       ///< of the attention probabilities, eager only matters
  std::int64_t window = 0;  ///< sliding: sdpa is given a mask once the sequence reaches it
  /// q is laid out [b, heads, s, d], as a concatenation along d leaves it. The flash kernel gives
  /// its output the layout of q, and reading that token by token copies it.
  bool heads_first = false;
  bool causal = true;  ///< queries see no later keys
  /// Keys that each query sees where a tower's rows are in windows; 0: all of its image.
  std::int64_t within = 0;
  bool one_by_one = false;    ///< images attend in calls of their own: no batch to fold heads into
  bool one_sequence = false;  ///< all images are one sequence, and a mask keeps them apart
  // How the class writes its eager attention.
  bool softmax_f32 = true;  ///< softmax(dtype=float32), then back; false: in the scores' dtype
  bool scores_f32 = false;  ///< q and k are cast to fp32 before their product
  bool softcap = false;     ///< tanh(scores / cap)·cap
  /// Queries and keys as the product reads them, scores without a mask and with it have a name each
  /// until the module returns.
  bool names_scores = false;
  /// Its block returns the probabilities beside the result (Graph::return_beside).
  bool returns_weights = false;
  std::int32_t mask = kNone;  ///< in Model::shared: the additive mask [b, 1, s, s]
};

/// The additive causal mask that eager attention is given; sdpa runs without one (kNone).
std::int32_t share_causal_mask(ModelBuilder& m, AttentionKind kind, Scale scale = Scale::scores);

/// The same for layers that see `window` tokens, or with 0 all: of a window fused attention is
/// given a boolean one, which the model's forward makes for all of them (transformers 5.17,
/// masking_utils.py, sdpa_mask), and each call makes an additive one of it. The kernels of
/// Transformer Engine and of flash-attn take the window itself.
std::int32_t share_window_mask(ModelBuilder& m, AttentionKind kind, std::int64_t window);

/// The names that a module's forward has for what it attends with, until it has made `out`. Those
/// of keys and values a cache binds anew.
void name_locals(Graph& g, ValueId x, ValueId q, ValueId k, ValueId v, ValueId out);

/// With a KV cache: keys and values of all tokens so far in place of this pass's own, and `shape`
/// told so. For attention of a sequence to itself; the functions below call it.
void through_cache(Graph& g, AttentionShape& shape, ValueId& k, ValueId& v);

/// softmax(q·kᵀ/√d)·v over q [.., heads·d], k and v [.., kv_heads·d]; returns [.., heads·d].
/// sdpa runs the fused kernel and keeps no s×s tensor; eager repeats k and v to `heads` and keeps
/// the probabilities. `bias` is an optional additive tensor of the scores' size (T5, ALiBi).
ValueId attention(Graph& g, AttentionKind kind, const AttentionShape& shape, ValueId q, ValueId k,
                  ValueId v, ValueId bias = kNone);

/// scaled_dot_product_attention with a mask, which rules the flash kernel out: an additive one for
/// all heads (`bias`), or else a boolean one that the call converts. The memory-efficient kernel
/// keeps the mask too. Keys and values have as many heads as queries. `columns`: of each query in a
/// mask that the call makes where there is no `bias`; 0: one for each key.
ValueId masked_attention(Graph& g, const AttentionShape& shape, ValueId q, ValueId k, ValueId v,
                         ValueId bias = kNone, std::int64_t columns = 0);

/// What scaled_dot_product_attention falls back to when no fused kernel takes its arguments: the
/// operations one by one, in fp32 (aten/src/ATen/native/transformers/attention.cpp,
/// _scaled_dot_product_attention_math).
ValueId math_attention(Graph& g, const AttentionShape& shape, ValueId q, ValueId k, ValueId v,
                       ValueId bias = kNone);

/// The scale of the s×s scores between queries and keys.
Scale score_scale(Scale queries, Scale keys);

}  // namespace shardplan
