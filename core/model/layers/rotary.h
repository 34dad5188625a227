// Rotary position embeddings, as the modelling code of Hugging Face applies them.
#pragma once

#include "model/layers/basic.h"

namespace shardplan {

/// The two fp32-computed tables of rotary embeddings, cos and sin, each [s, rotary_dim].
struct RotaryTables {
  std::int32_t cos = kNone, sin = kNone;  ///< indices in Model::shared
  std::int64_t dim = 0;
  bool of_batch = false;  ///< a row for each token of the batch: positions differ among samples
};
RotaryTables share_rotary(ModelBuilder& m, std::int64_t rotary_dim, Scale scale = Scale::sequence,
                          bool f32 = false);

/// How a class applies its tables.
struct Rotation {
  ValueId cos = kNone, sin = kNone;
  std::int64_t dim = 0;
  bool always_cat = false;   ///< concatenates the untouched dims even when there are none
  bool upcast = false;       ///< x.float() first
  bool pairs = false;        ///< neighbours are swapped: columns of both halves are stacked
  bool late_upcast = false;  ///< x.float() and rotate_half(x).float()
  bool cast_back = false;    ///< the result returns to the dtype of x
};
/// The shared tables as values of `g`; `x_scale` is that of the tensors to rotate.
Rotation rotation(Graph& g, const RotaryTables& tables, Scale x_scale = Scale::tokens);

/// x·cos + rotate_half(x)·sin over the first rotary dims of every head (all of them: dim == the
/// head's; fewer: the rest passes through and is concatenated back).
ValueId rotate(Graph& g, const Rotation& rotation, ValueId x, std::int64_t heads,
               std::int64_t head_dim);
ValueId rotate(Graph& g, const RotaryTables& tables, ValueId x, std::int64_t heads,
               std::int64_t head_dim);

/// A projection whose heads are rotated next, by itself: their gradients come with the heads first,
/// and reading them token by token copies them.
ValueId split_heads(Graph& g, ValueId x);

/// Queries and keys by one call, as apply_rotary_pos_emb does: both are cast, then both turned, and
/// the caller's names are bound anew when both are done.
void rotate_both(Graph& g, const Rotation& rotation, ValueId& q, std::int64_t heads, ValueId& k,
                 std::int64_t kv_heads, std::int64_t head_dim);

/// Pairs of columns of queries and keys as complex fp32 numbers, times `table`, which is constant
/// (Llama 4); kNone: times a buffer of the module.
void rotate_complex(Graph& g, ValueId& q, ValueId& k, ValueId table = kNone);

}  // namespace shardplan
