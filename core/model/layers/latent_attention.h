// Multi-head latent attention (DeepSeek-V2 and V3): queries and keys of a part without and a part
// with rotary positions, keys and values expanded from one compressed row a token.
#pragma once

#include <optional>
#include <vector>

#include "model/layers/decoder_stack.h"

namespace shardplan {

struct LatentShape {
  std::int64_t hidden = 0, heads = 0;
  std::optional<std::int64_t> q_rank;  ///< nullopt: one full q_proj
  std::int64_t kv_rank = 0;
  std::int64_t nope = 0, rope = 0, value = 0;  ///< head dims
  bool bias = false;
  double dropout = 0;
};

struct LatentAttention {
  LatentShape shape;
  LinearModule q, q_a, q_b, kv_a, kv_b, o;
  NormModule q_norm, kv_norm;
};

/// Registers the modules of self_attn in the order of the class.
LatentAttention latent_attention(ModelBuilder& m, const LatentShape& shape);

/// How the rotary part is turned.
enum class RotaryForm : std::uint8_t {
  complex,      ///< V2: as complex numbers in fp32, and back
  interleaved,  ///< V3: even and odd columns
  half,         ///< V3 with rope_interleave false: rotate_half
};

/// `heads` heads of `dim` columns, turned.
ValueId turn(Graph& g, RotaryForm form, const RotaryTables& tables, ValueId x, std::int64_t heads,
             std::int64_t dim);

ValueId apply(Graph& g, const LatentAttention& m, AttentionKind kind, RotaryForm form,
              const Positions& at, ValueId x);

/// What attention itself is given. Keys are whole; values may be a part of the expanded rows.
struct LatentStates {
  AttentionShape shape;
  ValueId compressed = kNone;  ///< queries before their second product; kNone: there is one alone
  ValueId queries = kNone, keys = kNone, values = kNone;
  std::vector<ValueId> locals;  ///< named until the attention module has returned
};
LatentStates latent_states(Graph& g, const LatentAttention& m, RotaryForm form, const Positions& at,
                           ValueId x);

/// cat(x1·cos - x2·sin, x2·cos + x1·sin) for the two halves of every head, with tables of half the
/// head's width (interleaved MLA, gpt-oss).
ValueId rotate_pairs(Graph& g, const RotaryTables& tables, ValueId x);

}  // namespace shardplan
