// The layers of BART, mBART and Whisper: attention and feed-forward with LayerNorm after (BART) or
// before (the others) each sublayer, the decoder with cross attention.
#pragma once

#include <optional>

#include "model/config.h"
#include "model/layers/attention.h"
#include "model/layers/mlp.h"

namespace shardplan {

struct SequenceShape {
  std::int64_t hidden = 0, heads = 0, ffn = 0;
  bool norm_first = false;
  bool key_bias = true;
  bool heads_first = false;  ///< q, k and v are copied head by head (Whisper)
  bool padded = false;       ///< sdpa is given a boolean mask of what was filled up
  Activation activation = Activation::gelu;
  std::string_view activation_name = "gelu";  ///< that the class has by default
  double dropout = 0, attention_dropout = 0, activation_dropout = 0;
};

struct SequenceAttention {
  LinearModule k, v, q, out;
  NormModule norm;
};

struct SequenceLayer {
  SequenceShape shape;
  SequenceAttention self;
  std::optional<SequenceAttention> cross;
  LinearModule fc1, fc2;
  NormModule norm;
};

/// The keys that the three families share; `prefix` is "encoder" or "decoder".
SequenceShape read_sequence_shape(const ModelConfig& config, std::string_view prefix,
                                  std::int64_t hidden, const SequenceShape& defaults);

/// Registers self_attn, (encoder_attn,) fc1, fc2 and their norms in the order of the class.
SequenceLayer sequence_layer(ModelBuilder& m, const SequenceShape& shape, bool decoder);

/// One layer over x; `encoded` is the encoder's output for a decoder layer, `mask` (in
/// Model::shared) what is added to its scores: eager attention's causal mask, or one of padding.
ValueId apply(Graph& g, const SequenceLayer& layer, AttentionKind kind, ValueId x,
              ValueId encoded = kNone, std::int32_t mask = kNone);

}  // namespace shardplan
