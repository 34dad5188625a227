// Attention and rotary embeddings, as the modelling code of Hugging Face writes them.
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
  double dropout = 0;  ///< of the attention probabilities, eager only matters
};

/// The two fp32-computed tables of rotary embeddings, cos and sin, each [s, rotary_dim].
struct RotaryTables {
  std::int32_t cos = kNone, sin = kNone;  ///< indices in Model::shared
  std::int64_t dim = 0;
};
RotaryTables share_rotary(ModelBuilder& m, std::int64_t rotary_dim, Scale scale = Scale::sequence);

/// x·cos + rotate_half(x)·sin over the first rotary dims of every head (all of them: dim == the
/// head's; fewer: the rest passes through and is concatenated back).
ValueId rotate(Graph& g, const RotaryTables& tables, ValueId x, std::int64_t heads,
               std::int64_t head_dim);

/// softmax(q·kᵀ/√d)·v over q [.., heads·d], k and v [.., kv_heads·d]; returns [.., heads·d].
/// sdpa runs the fused kernel and keeps no s×s tensor; eager repeats k and v to `heads` and keeps
/// the probabilities. `bias` is an optional additive tensor of the scores' size (T5, ALiBi).
ValueId attention(Graph& g, AttentionKind kind, const AttentionShape& shape, ValueId q, ValueId k,
                  ValueId v, ValueId bias = kNone);

/// The scale of the s×s scores between queries and keys.
Scale score_scale(Scale queries, Scale keys);

}  // namespace shardplan
