#include "model/layers/heads.h"

#include "model/layers/loss.h"

namespace shardplan {

namespace {

/// The mean of the labels' log-probabilities.
ValueId label_loss(Graph& g, ValueId logits, Extent labels = {}) {
  // ATen's cross_entropy_loss asks for the softmax in the logits' own type (LossNLL.cpp), which
  // autocast respects; only the loss over it is in fp32.
  g.set_autocast(false);
  const ValueId log_probabilities = g.map(OpKind::log_softmax, logits);
  g.set_autocast(true);
  Op mean{OpKind::nll_loss, {log_probabilities, kNone, kNone}};
  mean.side = labels;
  return g.op(mean, {1, Scale::one});
}

/// The model's forward, which has a name for what its blocks gave, returns with the loss: what a
/// trainer makes of its outputs comes behind.
void end_forward(Graph& g, ValueId loss) {
  g.let_input_go();
  for (const Input& in : g.inputs())
    if (in.kind == InputKind::chained) g.hold(in.value, loss);
}

}  // namespace

ValueId cross_entropy(Graph& g, ValueId logits, Extent labels) {
  const ValueId loss = label_loss(g, logits, labels);
  end_forward(g, loss);
  return_logits(g, logits, loss);
  return loss;
}

ValueId cross_entropy_f32(Graph& g, ValueId logits) {
  const ValueId wide = g.map(OpKind::to_f32, logits);
  const ValueId loss = label_loss(g, wide);
  g.hold(wide, loss);
  end_forward(g, loss);
  return_logits(g, logits, loss);
  return loss;
}

ValueId mean_loss(Graph& g, ValueId x) {
  return g.op({OpKind::mean, {x, kNone, kNone}}, {1, Scale::one});
}

ValueId first_token(Graph& g, ValueId x) {
  return g.view(x, {per(g, x), Scale::batch});
}

}  // namespace shardplan
