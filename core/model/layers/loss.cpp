#include "model/layers/loss.h"

namespace shardplan {

ValueId language_model_loss(Graph& g, const LinearModule& head, ValueId x, bool softcap) {
  g.begin_logits();
  ValueId logits = apply(g, head, x);
  if (softcap) {
    const ValueId squashed = g.map(OpKind::tanh, g.map(OpKind::scalar, logits));
    logits = g.map(OpKind::scalar, squashed);
  }
  const ValueId wide = g.map(OpKind::to_f32, logits);
  const ValueId log_probabilities = g.map(OpKind::log_softmax, wide);
  const ValueId loss = g.op({OpKind::nll_loss, {log_probabilities, kNone, kNone}}, {1, Scale::one});
  // The loss function and the model's output object still name them when the loss is made.
  g.hold(wide, loss);
  g.hold(logits, loss);
  return loss;
}

}  // namespace shardplan
