// The generalized Jensen-Shannon divergence of TRL 1.16 (experimental/gkd/gkd_trainer.py,
// generalized_jsd_loss; ms-swift 4, rlhf_trainers/gkd_loss.py, is the same over 512 rows at a
// time), with a mixture of both distributions: of one alone less is kept.
#include "model/layers/distillation.h"

#include "model/layers/heads.h"

namespace shardplan {
namespace {

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
  /// Of the teacher: nothing of it takes a gradient.
  ValueId frozen(OpKind kind, ValueId x, ValueId second = kNone) {
    Op op{kind, {x, second, kNone}};
    op.detached = true;
    return g_.op(op, g_.value(x).extent);
  }
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

}  // namespace

ValueId distilled(Graph& g, ValueId logits) {
  const ValueId student = g.widens_outputs() ? g.map(OpKind::to_f32, logits) : logits;
  if (g.loss() == LossKind::logits) return student;
  const Extent extent = g.value(student).extent;
  const auto other = [&](ValueId x) {
    Op copy{OpKind::copy, {x, kNone, kNone}};
    copy.detached = true;
    return g.op(copy, extent);
  };
  // The loss is computed outside of the model's forward, where autocast ends.
  g.set_autocast(false);
  const ValueId teacher = other(student);
  const bool chunks = g.loss() == LossKind::distillation_in_chunks;
  // ms-swift picks the rows that have a label out of both before it starts.
  const ValueId rows = chunks ? g.map(OpKind::copy, student) : student;
  const ValueId its_rows = chunks ? other(teacher) : teacher;
  const ValueId loss = Divergence(g, !chunks).of(rows, its_rows);
  g.set_autocast(true);
  for (const ValueId value : {logits, student, teacher, rows, its_rows}) g.hold(value, loss);
  return loss;
}

}  // namespace shardplan
