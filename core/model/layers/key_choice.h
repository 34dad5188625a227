// Attention to chosen keys (DeepSeek V3.2, GLM 5): an indexer scores every key for each query, and
// attention is given a mask of its choice.
//
// Modelled: DeepseekV32Indexer and DeepseekV32Attention of transformers 5.17 with eager or sdpa
// attention. The indexer runs under no_grad, in fp32 and over all pairs of tokens, so that it keeps
// nothing and needs much; attention computes the whole square. Kernels that read the chosen keys
// alone (flash-mla) are for inference.
#pragma once

#include "model/layers/latent_attention.h"

namespace shardplan {

struct KeyIndexerShape {
  std::int64_t hidden = 0, q_rank = 0;  ///< of what it reads
  std::int64_t heads = 0, dim = 0, rope = 0;
  std::int64_t chosen = 0;  ///< keys of each query; sequences may be shorter
  RotaryForm rotary = RotaryForm::half;
};

struct KeyIndexer {
  KeyIndexerShape shape;
  LinearModule q, k, weights;
  NormModule k_norm;
};

/// Registers self_attn.indexer.{wq_b, wk, k_norm, weights_proj}, which get no gradient.
KeyIndexer key_indexer(ModelBuilder& m, const KeyIndexerShape& shape);

/// The int32 places of the chosen keys, [tokens, chosen], of x [tokens, hidden] and the compressed
/// queries [tokens, q_rank].
ValueId choose_keys(Graph& g, const KeyIndexer& indexer, const RotaryTables& tables, ValueId x,
                    ValueId compressed);

/// The choice of an earlier layer, of as many keys, which this layer's caller holds.
ValueId carried_choice(Graph& g, std::int64_t chosen, ValueId x);

/// attention() whose queries see the keys of `choice` alone.
ValueId attention_to_chosen(Graph& g, AttentionKind kind, const AttentionShape& shape, ValueId q,
                            ValueId k, ValueId v, ValueId choice);

}  // namespace shardplan
