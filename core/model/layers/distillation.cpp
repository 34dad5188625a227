// The generalized Jensen-Shannon divergence of TRL 1.16 (experimental/gkd/gkd_trainer.py,
// generalized_jsd_loss; ms-swift 4, rlhf_trainers/gkd_loss.py, is the same over 512 rows at a
// time), with a mixture of both distributions: of one alone less is kept.
#include "model/layers/distillation.h"

#include "model/layers/heads.h"

namespace shardplan {
namespace {

/// Of the reference: nothing of it takes a gradient.
ValueId detached(Graph& g, OpKind kind, ValueId x, ValueId second = kNone) {
  Op op{kind, {x, second, kNone}};
  op.detached = true;
  return g.op(op, g.value(x).extent);
}

/// Writes the loss's operations, and which of their results Python has names for.
class Divergence {
 public:
  Divergence(Graph& g, bool names) : g_(g), names_(names) {}

  ValueId of(ValueId student, ValueId teacher) {
    const ValueId scaled = kept(g_.map(OpKind::scalar, student));
    const ValueId own = g_.map(OpKind::log_softmax, scaled);
    const ValueId other = named(frozen(OpKind::log_softmax, kept(frozen(OpKind::scalar, teacher))));
    const ValueId mixture = mix(own, other);
    const ValueId loss = g_.map(OpKind::add, weighted(divergence(mixture, other, true)),
                                weighted(divergence(mixture, own, false)));
    const ValueId mean = mean_loss(g_, g_.map(OpKind::copy, named(loss)));
    for (const ValueId value : until_end_) g_.hold(value, mean);
    return mean;
  }

 private:
  ValueId frozen(OpKind kind, ValueId x) { return detached(g_, kind, x); }
  /// What has a name until the loss is made.
  ValueId kept(ValueId x) {
    until_end_.push_back(x);
    return x;
  }
  /// The same, of what chunks give up before the next one.
  ValueId named(ValueId x) { return names_ ? kept(x) : x; }

  /// log((1 − β)·own + β·other), of a stack of both.
  ValueId mix(ValueId own, ValueId other) {
    const Extent each = g_.value(own).extent;
    Extent both = each;
    both.per = checked_mul(each.per, 2);
    const ValueId shares[]{g_.map(OpKind::scalar, own), frozen(OpKind::scalar, other)};
    const ValueId stack = g_.op({OpKind::cat, {shares[0], shares[1], kNone}}, both);
    return g_.op({OpKind::log_sum_exp, {stack, kNone, kNone}}, each);
  }
  /// exp(target)·(target − input), as ATen's kl_div with log_target makes it (Loss.cpp).
  ValueId divergence(ValueId input, ValueId target, bool of_teacher) {
    const ValueId weight =
        of_teacher ? frozen(OpKind::exponential, target) : g_.map(OpKind::exponential, target);
    return named(g_.map(OpKind::mul, weight, g_.map(OpKind::add, target, input)));
  }
  ValueId weighted(ValueId x) { return g_.map(OpKind::scalar, x); }

  Graph& g_;
  bool names_;
  std::vector<ValueId> until_end_;
};

ValueId loss_of_labels(Graph& g, ValueId log_probabilities) {
  Op mean{OpKind::nll_loss, {log_probabilities, kNone, kNone}};
  mean.side = {1, g.value(log_probabilities).extent.scale};
  return g.op(mean, {1, Scale::one});
}

/// LLaMA-Factory 0.9.6, train/trainer_utils.py (_asft_cross_entropy): fp32 logits, cut from the
/// first to the last but one, their cross-entropy, and kl_div with probabilities of the reference.
/// The model has made its own loss before, whose tensors its output object holds.
ValueId anchored(Graph& g, ValueId student) {
  const ValueId own = detached(g, OpKind::log_softmax, detached(g, OpKind::to_f32, student));
  const ValueId other = detached(g, OpKind::copy, detached(g, OpKind::copy, student));
  const ValueId wide = g.map(OpKind::to_f32, student);
  const ValueId shifted = g.map(OpKind::copy, wide);
  const ValueId labels = loss_of_labels(g, g.map(OpKind::log_softmax, shifted));
  const ValueId log_p = g.map(OpKind::log_softmax, shifted);
  const ValueId q = detached(g, OpKind::softmax, other);
  const ValueId terms =
      g.map(OpKind::add, detached(g, OpKind::mul, q, q), g.map(OpKind::mul, q, log_p));
  const ValueId loss = g.map(OpKind::add, labels, mean_loss(g, terms));
  for (const ValueId value : {own, other, wide, shifted, student}) g.hold(value, loss);
  return loss;
}

}  // namespace

ValueId distilled(Graph& g, ValueId logits) {
  const ValueId student = g.widens_outputs() ? g.map(OpKind::to_f32, logits) : logits;
  if (g.loss() == LossKind::logits) return student;
  if (g.loss() == LossKind::anchored) {
    g.set_autocast(false);
    const ValueId loss = anchored(g, student);
    g.set_autocast(true);
    g.hold(logits, loss);
    return loss;
  }
  // The loss is computed outside of the model's forward, where autocast ends.
  g.set_autocast(false);
  const ValueId teacher = detached(g, OpKind::copy, student);
  const bool chunks = g.loss() == LossKind::distillation_in_chunks;
  // ms-swift picks the rows that have a label out of both before it starts.
  const ValueId rows = chunks ? g.map(OpKind::copy, student) : student;
  const ValueId its_rows = chunks ? detached(g, OpKind::copy, teacher) : teacher;
  const ValueId loss = Divergence(g, !chunks).of(rows, its_rows);
  g.set_autocast(true);
  for (const ValueId value : {logits, student, teacher, rows, its_rows}) g.hold(value, loss);
  return loss;
}

}  // namespace shardplan
