// The attention module of decoders with rotary positions and grouped key and value heads.
#pragma once

#include <optional>

#include "model/layers/decoder_stack.h"

namespace shardplan {

struct RotaryAttention {
  LinearModule q, k, v, o;
  std::optional<NormModule> q_norm, k_norm;  ///< RMS over the columns of one head (Qwen 3)
  AttentionShape shape;
  bool scales_keys = false;  ///< keys times a number (Falcon-H1)
};

/// Registers name.{q,k,v,o}_proj and, with `head_norms`, name.{q,k}_norm.
RotaryAttention rotary_attention(ModelBuilder& m, std::int64_t hidden, const AttentionShape& shape,
                                 bool qkv_bias, bool o_bias, bool head_norms = false,
                                 std::string_view name = "self_attn");

/// Without tables (Positions) nothing is turned.
ValueId apply(Graph& g, const RotaryAttention& m, AttentionKind kind, const Positions& at,
              ValueId x);

}  // namespace shardplan
