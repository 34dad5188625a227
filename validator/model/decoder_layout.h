// Where a decoder's parameters are: its units, and the index of each tensor in its unit.
#pragma once

#include <vector>

#include "model/adapter_layout.h"
#include "model/spec.h"
#include "model/unit.h"

namespace shardplan::validator {

/// Indices in a unit's parameters; -1: this network has none.
struct BlockParameters {
  int norm1_weight = -1, norm1_bias = -1;  ///< [hidden]
  int qkv_weight = -1, qkv_bias = -1;      ///< [(q + 2·kv heads)·head_dim, hidden]
  int q_norm = -1, k_norm = -1;            ///< [head_dim]
  int out_weight = -1, out_bias = -1;      ///< [hidden, q heads·head_dim]
  int norm2_weight = -1, norm2_bias = -1;  ///< [hidden]
  int up_weight = -1, up_bias = -1;        ///< [inner, hidden]; gate above up if gated
  int down_weight = -1, down_bias = -1;    ///< [hidden, inner]
  int router = -1;                         ///< [experts, hidden], in the place of up and down
};

/// Indices in the unit of a block's experts.
struct ExpertParameters {
  int up_weight = -1;    ///< [experts here, up width, hidden]
  int down_weight = -1;  ///< [experts here, hidden, inner]
};

struct DecoderLayout {
  static constexpr int kNone = -1;

  std::vector<Unit> units;               ///< embedding, the blocks, each followed by its experts
                                         ///< or adapters, head; of a stage, what it has
  int tokens = -1;                       ///< [padded vocabulary, hidden], in the embedding
  int positions = -1;                    ///< [positions, hidden], in the embedding
  BlockParameters block;                 ///< the same in every block
  ExpertParameters experts;              ///< the same in the experts of every block
  int norm_weight = -1, norm_bias = -1;  ///< [hidden], in the head
  AdapterParameters adapters;            ///< the same in every block
  int head = -1;  ///< [padded vocabulary, hidden]; -1: the embedding's tokens

  int embedding_unit = 0, head_unit = kNone;
  bool quantized = false;  ///< blocks have a unit of bytes, with their matrices
  /// A block's own unit, and those of its experts, its matrices of 4 bits and the adapters of both.
  int units_of_block() const {
    return 1 + (block.router < 0 ? 0 : 1) + (quantized ? 1 : 0) + (adapters.any(false) ? 1 : 0) +
           (adapters.any(true) ? 1 : 0);
  }
  int block_unit(std::int64_t i) const {
    return embedding_unit + 1 + units_of_block() * static_cast<int>(i);
  }
};

/// Of one rank's part where the spec is of one; tensor_share.h says how parts and whole agree.
DecoderLayout lay_out(const DecoderSpec& spec);

}  // namespace shardplan::validator
