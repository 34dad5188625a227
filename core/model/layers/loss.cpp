#include "model/layers/loss.h"

namespace shardplan {

namespace {

ValueId mapped(Graph& g, ValueId logits, LogitMap map) {
  if (map == LogitMap::scale) return g.map(OpKind::scalar, logits);
  if (map == LogitMap::none) return logits;
  const ValueId squashed = g.map(OpKind::tanh, g.map(OpKind::scalar, logits));
  return g.map(OpKind::scalar, squashed);
}

/// Generation asks for the last position's logits only (logits_to_keep=1) and no loss.
ValueId last_logits(Graph& g, const LinearModule& head, ValueId x, LogitMap map) {
  const ValueId last = g.view(x, {g.value(x).extent.per, Scale::batch});
  const ValueId logits = mapped(g, apply(g, head, last), map);
  g.hold(x, logits);
  return logits;
}

}  // namespace

ValueId language_model_loss(Graph& g, const LinearModule& head, ValueId x, LogitMap map) {
  // hidden_states = norm(hidden_states) in the model's forward; its output object has the result.
  g.let_input_go();
  g.begin_logits();
  if (g.cached()) return last_logits(g, head, x, map);
  if (g.loss() == LossKind::fused_linear && !g.fuses()) {
    Op fused{OpKind::fused_linear_loss, {x, kNone, kNone}};
    fused.module = head.module;
    fused.weight = head.weight;
    fused.bias = head.bias;
    const Extent in = g.value(x).extent;
    fused.work = {checked_mul(in.per, head.out), in.scale};
    return g.op(fused, {1, Scale::one});
  }
  const ValueId logits = mapped(g, apply(g, head, x), map);
  if (g.fuses()) {
    Op in_place{OpKind::vocabulary_loss, {logits, kNone, kNone}};
    if (g.loss() == LossKind::cross_entropy) in_place.side = g.value(logits).extent;
    const ValueId loss = g.op(in_place, {1, Scale::one});
    g.hold(logits, loss);
    return loss;
  }
  const ValueId wide = g.map(OpKind::to_f32, logits);
  const ValueId log_probabilities = g.map(OpKind::log_softmax, wide);
  Op mean{OpKind::nll_loss, {log_probabilities, kNone, kNone}};
  mean.side = {1, g.value(log_probabilities).extent.scale};  // the shifted copy of the labels
  const ValueId loss = g.op(mean, {1, Scale::one});
  // The loss function and the model's output object still name them when the loss is made.
  g.hold(wide, loss);
  if (g.loss() != LossKind::log_probabilities) g.hold(logits, loss);
  g.hold(x, loss);
  return loss;
}

void add_causal_head(ModelBuilder& m, const NormModule& norm, const LinearModule& head) {
  Graph& g = m.begin_segment("head");
  const ValueId last = g.chained_input({norm.width, Scale::tokens});
  g.set_output(language_model_loss(g, head, layer_norm(g, norm, last)));
}

}  // namespace shardplan
