#include "model/architectures/encoder.h"

namespace shardplan {

Encoder read_encoder(const ModelConfig& c, const EncoderDefaults& d) {
  Encoder e;
  e.shape.hidden = c.count({"hidden_size"}, d.hidden);
  e.shape.ffn = c.count({"intermediate_size"}, d.ffn);
  e.layers = c.count({"num_hidden_layers"}, d.layers);
  e.shape.heads = c.count({"num_attention_heads"}, d.heads);
  e.vocab = c.count({"vocab_size"}, d.vocab);
  e.positions = c.count({"max_position_embeddings"}, d.positions);
  e.shape.hidden_dropout = c.number("hidden_dropout_prob", 0.1);
  e.shape.attention_dropout = c.number("attention_probs_dropout_prob", 0.1);
  e.classifier_dropout = c.number("classifier_dropout", e.shape.hidden_dropout);
  c.require_divisible("hidden_size", e.shape.hidden, "num_attention_heads", e.shape.heads);
  return e;
}

ModelFacts facts_of(const Encoder& e) {
  return {.hidden = e.shape.hidden,
          .layers = e.layers,
          .vocabulary = e.vocab,
          .max_positions = e.positions,
          .attention_heads = e.shape.heads,
          .key_value_heads = e.shape.heads,
          .embeds_in_module = true};
}

}  // namespace shardplan
