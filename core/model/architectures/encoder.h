// What encoders of BERT's kind read of their configurations.
#pragma once

#include "model/config.h"
#include "model/layers/encoder_layer.h"
#include "model/model.h"

namespace shardplan {

struct EncoderDefaults {
  std::int64_t hidden, ffn, layers, heads, vocab, positions;
};

struct Encoder {
  EncoderShape shape;
  std::int64_t layers, vocab, positions;
  double classifier_dropout;
};

Encoder read_encoder(const ModelConfig& config, const EncoderDefaults& defaults);

ModelFacts facts_of(const Encoder& encoder);

}  // namespace shardplan
