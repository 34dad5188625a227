#include "model/layers/token_prediction.h"

namespace shardplan {

TokenPredictor token_predictor(ModelBuilder& m, std::int64_t hidden, NormKind norm) {
  TokenPredictor p;
  p.tokens = register_norm(m, norm, "enorm", hidden);
  p.states = register_norm(m, norm, "hnorm", hidden);
  p.joined = m.linear("eh_proj", 2 * hidden, hidden);
  p.last = register_norm(m, norm, "final_layernorm", hidden);
  return p;
}

ValueId predictor_input(Graph& g, const TokenPredictor& p, const EmbeddingModule& words,
                        NormKind norm, ValueId states) {
  const ValueId tokens = normalize(g, norm, p.tokens, apply(g, words, Scale::tokens));
  const ValueId normal = normalize(g, norm, p.states, states);
  const ValueId both =
      g.op({OpKind::cat, {tokens, normal, kNone}}, {2 * p.states.width, Scale::tokens});
  return apply(g, p.joined, both);
}

ValueId predicted_losses(Graph& g, const LinearModule& head, ValueId states, std::int64_t hidden,
                         std::int64_t further, LogitMap logits) {
  ValueId sum = kNone;
  for (std::int64_t i = 0; i <= further; ++i) {
    const ValueId loss = language_model_loss(g, head, slice(g, states, hidden), logits);
    sum = sum == kNone ? loss : g.map(OpKind::add, sum, loss);
  }
  return sum;
}

}  // namespace shardplan
