// Multi-token prediction under Megatron-LM: layers behind the others that predict further tokens.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/builder.h"
#include "model/layers/loss.h"
#include "model/layers/norms.h"

namespace shardplan {

/// What surrounds the layer of one further token (Megatron-LM d98e8a64dd,
/// transformer/multi_token_prediction.py, MultiTokenPredictionLayer).
struct TokenPredictor {
  NormModule tokens, states, last;
  LinearModule joined;  ///< eh_proj: both in one
};

/// Registers enorm, hnorm, eh_proj and final_layernorm.
TokenPredictor token_predictor(ModelBuilder& m, std::int64_t hidden, NormKind norm);

/// What the layer is given: hidden states beside the embedding of the tokens that follow.
ValueId predictor_input(Graph& g, const TokenPredictor& p, const EmbeddingModule& words,
                        NormKind norm, ValueId states);

/// Writes the segment of further token number `index` (0 first): its input has the hidden states of
/// all tokens so far, `hidden` numbers each, and its output those and one more. The first segment
/// applies the network's own final norm. `layer(g, x)` writes the layer.
template <typename Layer>
void add_prediction(ModelBuilder& m, const TokenPredictor& p, const EmbeddingModule& words,
                    NormKind kind, const NormModule& norm, std::int64_t index, Layer&& layer) {
  const std::int64_t hidden = norm.width;
  Graph& g = m.begin_segment("token prediction", 1, true, false);
  ValueId before = g.chained_input({hidden * (index + 1), Scale::tokens});
  if (index == 0) before = normalize(g, kind, norm, before);
  const ValueId states = index == 0 ? before : slice(g, before, hidden);
  const ValueId made = layer(g, predictor_input(g, p, words, kind, states));
  const ValueId own = normalize(g, kind, p.last, made);
  g.set_output(g.op({OpKind::cat, {before, own, kNone}}, {hidden * (index + 2), Scale::tokens}));
}

/// The losses of the network's own token and of `further` ones, each over logits of its own, of
/// hidden states that are normed already.
ValueId predicted_losses(Graph& g, const LinearModule& head, ValueId states, std::int64_t hidden,
                         std::int64_t further, LogitMap logits);

}  // namespace shardplan
