// The graph of Gemma 3n's layers.
#pragma once

#include "model/architectures/gemma3n.h"
#include "model/layers/attention.h"
#include "model/layers/rotary.h"

namespace shardplan {

/// What layers of one kind of attention are given; numbers in Model::shared.
struct Gemma3nContext {
  AttentionKind kind = AttentionKind::sdpa;
  AttentionShape shape;
  RotaryTables tables;
  std::int32_t keys = kNone, values = kNone;  ///< of the layer that lends them
  std::int32_t each = kNone;                  ///< embeddings of all layers
};

/// Writes a layer: streams in, streams out.
void gemma3n_layer(Graph& g, const Gemma3n& t, const Gemma3nLayer& l, const Gemma3nKind& kind,
                   const Gemma3nContext& context);

}  // namespace shardplan
