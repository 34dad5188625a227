// The layer of BERT and its kin: attention, feed-forward, a LayerNorm after each.
#pragma once

#include <string_view>

#include "model/layers/attention.h"
#include "model/layers/mlp.h"

namespace shardplan {

struct EncoderShape {
  std::int64_t hidden = 0, ffn = 0, heads = 0;
  double hidden_dropout = 0, attention_dropout = 0;
  Activation activation = Activation::gelu;
};

struct EncoderLayer {
  LinearModule query, key, value, out, up, down;
  NormModule attention_norm, norm;
};

/// Registers attention.self.{query, key, value}, attention.output, intermediate and output;
/// `suffix` follows the names of the first three.
EncoderLayer encoder_layer(ModelBuilder& m, const EncoderShape& shape,
                           std::string_view suffix = {});

/// The layer over x [tokens, hidden].
ValueId apply(Graph& g, const EncoderLayer& layer, const EncoderShape& shape, AttentionKind kind,
              ValueId x);

/// What follows the attention, whose result is `context`.
ValueId after_attention(Graph& g, const EncoderLayer& layer, const EncoderShape& shape, ValueId x,
                        ValueId context);

}  // namespace shardplan
