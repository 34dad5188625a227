#include "model/layers/loss.h"

#include "kernels/registry.h"
#include "model/layers/distillation.h"
#include "model/layers/heads.h"

namespace shardplan {

namespace {

ValueId mapped(Graph& g, ValueId logits, LogitMap map) {
  if (map == LogitMap::scale) return g.map(OpKind::scalar, logits);
  if (map == LogitMap::upcast) return g.map(OpKind::to_f32, logits);
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

/// What computes head and loss at once: the trainer, or Liger, in whatever network the job asks
/// for it; null: nothing does. Adapters of the head get no gradient there, as only its weight is
/// read: it is estimated with all logits.
const FusedKernel* head_kernel(const Graph& g, const LinearModule& head) {
  if (g.fuses() || head.lora || head.rotation) return nullptr;
  if (g.head_loss() != nullptr) return g.head_loss();
  const auto liger = static_cast<std::size_t>(KernelName::fused_linear_cross_entropy);
  if (g.loss() == LossKind::fused_linear) return fused_kernels()[liger];
  // A trainer with a loss of its own asks the model for logits, whatever Liger patches.
  return g.token_loss() == nullptr ? g.fused(KernelName::fused_linear_cross_entropy) : nullptr;
}

ValueId fused_linear_loss(Graph& g, const LinearModule& head, ValueId x,
                          const FusedKernel* kernel) {
  Op op{OpKind::fused_linear_loss, {x, kNone, kNone}};
  op.module = head.module;
  op.weight = head.weight;
  op.bias = head.bias;
  const Extent in = g.value(x).extent;
  op.work = {checked_mul(in.per, head.out), in.scale};
  op.side = {1, in.scale};  // the shifted copy of the labels
  return g.fused_op(op, kernel, {1, Scale::one});
}

/// The mean of the labels' log-probabilities, from fp32 logits.
ValueId mean_loss_of(Graph& g, ValueId wide) {
  const Extent labels{1, g.value(wide).extent.scale};  // a shifted copy of them
  if (const FusedKernel* kernel = g.fused(KernelName::cross_entropy)) {
    Op op{OpKind::vocabulary_loss, {wide, kNone, kNone}};
    op.side = labels;
    return g.fused_op(op, kernel, {1, Scale::one});
  }
  Op mean{OpKind::nll_loss, {g.map(OpKind::log_softmax, wide), kNone, kNone}};
  mean.side = labels;
  return g.op(mean, {1, Scale::one});
}

/// logits[mask]: a copy of the rows that the attention mask picks, which it keeps.
ValueId picked(Graph& g, ValueId logits) {
  const Extent all = g.value(logits).extent;
  Op pick{OpKind::masked, {logits, kNone, kNone}};
  pick.side = {1, all.scale};
  return g.op(pick, all);
}

/// What the entropy of each token adds to the loss; `kernel`: one over logits that it leaves whole.
ValueId entropy_of(Graph& g, ValueId logits, const FusedKernel* kernel) {
  const Extent each{1, g.value(logits).extent.scale};
  if (g.entropy() == EntropyKind::compiled)
    return g.fused_op({OpKind::vocabulary_loss, {logits, kNone, kNone}}, kernel, {1, Scale::one});
  const ValueId probabilities = g.map(OpKind::softmax, logits);
  const ValueId products = g.map(OpKind::mul, probabilities, logits);
  return mean_loss(g, g.op({OpKind::mean, {products, kNone, kNone}}, each));
}

/// verl's entropy over parts of the vocabulary (0.8, utils/megatron/tensor_parallel.py): fp32
/// logits, cloned for it, and a second tensor of them that ends as its gradient.
ValueId entropy_of_parts(Graph& g, ValueId logits) {
  const ValueId wide = g.map(OpKind::to_f32, logits);
  Op entropy{OpKind::vocabulary_loss, {wide, kNone, kNone}};
  entropy.side = g.value(wide).extent;
  const ValueId result = g.op(entropy, {1, Scale::one});
  g.hold(wide, result);
  return result;
}

/// Log-probabilities of the labels over the logits themselves, or over them in fp32, and the
/// entropy where it is asked.
ValueId token_loss(Graph& g, ValueId logits) {
  const ValueId read = g.token_loss()->in_fp32 ? g.map(OpKind::to_f32, logits) : logits;
  Op labels{OpKind::vocabulary_loss, {read, kNone, kNone}};
  ValueId loss = g.fused_op(labels, g.token_loss(), {1, Scale::one});
  if (g.entropy() != EntropyKind::none)
    loss = g.map(OpKind::add, loss, entropy_of(g, read, g.token_loss()));
  g.hold(read, loss);
  return loss;
}

/// The heads of transformers/modeling_layers.py (GenericForSequenceClassification and its kin) and
/// their losses (loss/loss_utils.py). One label is a regression, whose loss is as small.
ValueId classification_loss(Graph& g, const LinearModule& head, ValueId x) {
  if (g.head().kind == HeadKind::none) return mean_loss(g, x);
  const bool tokens = g.head().kind == HeadKind::token;
  const ValueId states = tokens ? dropout(g, x, g.head().dropout) : x;
  const ValueId logits = apply(g, head, states);
  if (tokens) return cross_entropy(g, g.map(OpKind::to_f32, logits));
  // logits[arange, last_non_pad_token]: one row of each sequence.
  Op pick{OpKind::gather_rows, {logits, kNone, kNone}};
  pick.side = {1, Scale::batch};
  return cross_entropy(g, g.op(pick, {head.out, Scale::batch}));
}

}  // namespace

void return_logits(Graph& g, ValueId logits, ValueId loss) {
  g.hold(logits, loss);  // the model's output object names them
  g.set_returned(logits);
  const ValueId given = g.widens_outputs() ? g.map(OpKind::to_f32, logits) : logits;
  if (given != logits) g.set_widened(given);
  g.hold(logits, given);
  if (g.clones_outputs()) g.hold(given, g.map(OpKind::copy, given));
}

ValueId language_model_loss(Graph& g, const LinearModule& head, ValueId x, LogitMap map) {
  // hidden_states = norm(hidden_states) in the model's forward; its output object has the result.
  g.let_input_go();
  g.begin_logits();
  if (g.head().kind != HeadKind::language_model) return classification_loss(g, head, x);
  if (g.cached()) return last_logits(g, head, x, map);
  if (asks_whole_logits(g.loss())) return distilled(g, mapped(g, apply(g, head, x), map));
  if (const FusedKernel* kernel = head_kernel(g, head))
    return fused_linear_loss(g, head, x, kernel);
  const ValueId logits = mapped(g, apply(g, head, x), map);
  if (g.token_loss() != nullptr) return token_loss(g, logits);
  if (g.fuses()) {
    Op in_place{OpKind::vocabulary_loss, {logits, kNone, kNone}};
    if (g.loss() != LossKind::fused_linear) in_place.side = g.value(logits).extent;
    ValueId loss = g.op(in_place, {1, Scale::one});
    if (g.entropy() != EntropyKind::none)
      loss = g.map(OpKind::add, loss, entropy_of_parts(g, logits));
    g.hold(logits, loss);
    return loss;
  }
  const ValueId wide = g.picks_labels() ? picked(g, logits) : g.map(OpKind::to_f32, logits);
  const ValueId loss = mean_loss_of(g, wide);
  g.hold(wide, loss);  // the loss function still names them when the loss is made
  g.hold(x, loss);
  if (g.loss() != LossKind::log_probabilities) return_logits(g, logits, loss);
  return loss;
}

void add_causal_head(ModelBuilder& m, const NormModule& norm, const LinearModule& head) {
  Graph& g = m.begin_segment("head");
  const ValueId last = g.chained_input({norm.width, Scale::tokens});
  g.set_output(language_model_loss(g, head, layer_norm(g, norm, last)));
}

}  // namespace shardplan
