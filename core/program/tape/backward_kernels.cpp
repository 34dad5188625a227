#include <utility>

#include "program/tape/functions.h"
#include "program/tape/fused_kernels.h"
#include "program/tape/in_place.h"
#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

/// What the backward of `op` is made of: kernels over its result, in its type.
class BackwardList {
 public:
  BackwardList(const GraphView& view, const Op& op)
      : view_(view),
        op_(op),
        type_(view.state(op.out).dtype),
        whole_(view.moved(op.out, type_)),
        count_(view.count_of(op.out)) {}

  DType type() const { return type_; }
  double whole() const { return whole_; }  ///< bytes of the result
  double count() const { return count_; }  ///< its elements
  KernelList take() const { return list_; }

  /// The node's kernel.
  BackwardList& node(KernelKind kind, double bytes, double elements) {
    const Issue issue = op_.fused != nullptr ? Issue::fused_node : Issue::autograd;
    list_.add(memory_kernel(kind, issue, type_, bytes, elements));
    return *this;
  }
  /// A further one of the same call.
  BackwardList& then(KernelKind kind, double bytes, double elements) {
    list_.add(memory_kernel(kind, Issue::inner, type_, bytes, elements));
    return *this;
  }
  /// A node that starts nothing.
  BackwardList& nothing() { return node(KernelKind::none, 0, 0); }
  void add(const Kernel& kernel) { list_.add(kernel); }

  void sum_to(std::size_t k);
  KernelList products();
  KernelList attention();
  KernelList mul();
  KernelList broadcast();
  KernelList view_of_part();

 private:
  const GraphView& view_;
  const Op& op_;
  DType type_;
  double whole_, count_;
  KernelList list_;
};

KernelList BackwardList::attention() {
  const DType read = view_.read_type(op_, 0);
  if (view_.runs_as_math(op_, read)) return math_attention_kernels(view_, op_, Issue::autograd);
  Kernel a = attention_kernel(view_, op_, read);
  if (op_.again) list_.add(a);
  a.kind = KernelKind::attention_backward;
  a.issue = op_.one_by_one ? Issue::linear_node : Issue::autograd;
  list_.add(a);
  return list_;
}

/// Each factor's gradient is as large as that factor, and as deep as the result is on its other
/// side.
KernelList BackwardList::products() {
  const Kernel product = batched_product_kernel(view_, op_, view_.read_type(op_, 0));
  Kernel first = product, second = product;
  first.issue = second.issue = Issue::autograd;
  std::swap(first.n, first.k);
  std::swap(second.m, second.k);
  list_.add(first);
  list_.add(second);
  return list_;
}

/// The gradient of a factor is summed to its size.
void BackwardList::sum_to(std::size_t k) {
  const Extent operand = view_.extent_of(op_.in[k]);
  const bool across = operand.scale == Scale::one || units(operand, view_.sizes()) == 1;
  if (across) {
    then(KernelKind::column_sum, whole_, count_);
    return;
  }
  Kernel sum = memory_kernel(KernelKind::row_reduction, Issue::inner, type_, whole_, count_);
  const auto& how = op_.contraction;
  const double width =
      how ? static_cast<double>(how->gradients[k]) : count_ / view_.count_of(op_.in[k]);
  // Whose elements lie apart: 6.8 ps each of 64 in a row on an H200 where 3.5 are taken by those
  // that lie together (rates/h200/h200-row-sums.json).
  constexpr double kApart = 2;
  sum.m = short_rows((is_turned(view_, op_) ? kApart : 1) * count_, width);
  list_.add(sum);
}

KernelList BackwardList::mul() {
  Issue issue = Issue::autograd;
  for (std::size_t k = 0; k < 2; ++k) {
    if (op_.in[k] == kNone || !view_.state(op_.in[k]).needs_grad) continue;
    const ValueId other = op_.in[1 - k];
    const ValueState& factor = view_.state(other);
    const bool plain = view_.count_of(other) == count_ && factor.dtype == type_ && !factor.sliced;
    // A contraction's gradient is that of its sum, expanded.
    list_.add(memory_kernel(plain ? KernelKind::elementwise : KernelKind::strided, issue, type_,
                            (op_.contraction ? 1 : 2) * whole_ + view_.moved(other, factor.dtype),
                            count_));
    issue = Issue::inner;
    if (view_.count_of(op_.in[k]) < count_) sum_to(k);
  }
  return list_;
}

/// A broadcast operand's gradient is summed to its size.
KernelList BackwardList::broadcast() {
  nothing();
  for (const ValueId in : op_.in)
    if (in != kNone && view_.state(in).needs_grad && view_.count_of(in) < count_)
      then(KernelKind::column_sum, whole_, count_);
  return list_;
}

/// A slice's gradient is written into zeros of the whole.
KernelList BackwardList::view_of_part() {
  const ValueId in = op_.in[0];
  if (view_.count_of(in) <= count_) return nothing().list_;
  node(KernelKind::elementwise, view_.moved(in, type_), view_.count_of(in));
  return then(KernelKind::strided, 2 * whole_, count_).list_;
}

/// Ops whose backward is one kernel over whole tensors.
KernelList mapped(const GraphView& view, const Op& op) {
  BackwardList b(view, op);
  const double whole = b.whole(), count = b.count();
  const ValueId in = op.in[0];
  const auto read = [&](DType type) { return view.moved(in, type); };
  switch (op.kind) {
    case OpKind::embedding: {
      const Parameter& table = view.parameter(op.weight);
      const double bytes =
          static_cast<double>(table.numel * size_of(view.parameter_type(op.weight)));
      return b.node(KernelKind::embedding_backward, bytes + 3 * whole, count).take();
    }
    case OpKind::layer_norm:
    case OpKind::rms_norm:
      return b.node(KernelKind::layer_norm_backward, 5 * whole, count).take();
    case OpKind::rotary:
      return b.node(KernelKind::elementwise, (op.fused != nullptr ? 2 : 3) * whole, count).take();
    case OpKind::gated:
      return b.node(KernelKind::elementwise, 5 * whole, 2 * count).take();
    case OpKind::softmax:
    case OpKind::softmax_f32:
      return b.node(KernelKind::softmax_backward, 3 * whole, count).take();
    case OpKind::log_softmax:
      return b.node(KernelKind::log_softmax_backward, 3 * whole, count).take();
    case OpKind::nll_loss:
      return b.node(KernelKind::elementwise, read(view.read_type(op, 0)), view.count_of(in)).take();
    case OpKind::mean:  // the expanded gradient over the width
      return b.node(KernelKind::strided, read(view.state(in).dtype), view.count_of(in)).take();
    case OpKind::deviation:    // grad·(x − mean)
    case OpKind::log_sum_exp:  // grad·exp(x − result)
      return b.node(KernelKind::elementwise, 3 * read(view.read_type(op, 0)), view.count_of(in))
          .then(KernelKind::elementwise, 3 * read(view.read_type(op, 0)), view.count_of(in))
          .take();
    case OpKind::gather_rows:
    case OpKind::gather_columns:
      return b.node(KernelKind::embedding, read(b.type()) + 3 * whole, count).take();
    case OpKind::scatter_rows:
      return b.node(KernelKind::embedding, 2 * whole, count).take();
    case OpKind::scalar:
      return b.node(KernelKind::elementwise, 2 * whole, count).take();
    case OpKind::dropout:
      return b.node(KernelKind::elementwise, 2 * whole + count, count).take();
    default:
      return b.node(KernelKind::elementwise, 3 * whole, count).take();
  }
}

}  // namespace

LinearBackwardKernels linear_backward_kernels(const GraphView& view, const Op& op, DType type) {
  const Kernel forward = product_kernel(view, op, type);
  LinearBackwardKernels kernels;
  // Without an input value the op reads the batch itself (pixels, audio features).
  if (op.in[0] != kNone && view.state(op.in[0]).needs_grad) {
    kernels.input = forward;
    kernels.input->issue = Issue::linear_node;
    std::swap(kernels.input->n, kernels.input->k);
  }
  if (view.trains(op.weight)) {
    kernels.weight = forward;
    kernels.weight->issue = Issue::linear_node;
    kernels.weight->m = forward.n;
    kernels.weight->n = forward.k;
    kernels.weight->k = forward.m;
    kernels.weight->sums_rows = true;
  }
  if (view.trains(op.bias))
    kernels.bias = memory_kernel(KernelKind::column_sum, Issue::inner, type,
                                 view.moved(op.out, type), view.count_of(op.out));
  return kernels;
}

KernelList backward_kernels(const GraphView& view, const Op& op) {
  BackwardList b(view, op);
  if (writes_view(op)) return written_view_kernels(view, op);
  switch (op.kind) {
    case OpKind::fused_linear_loss:
      return scaling_kernels(view, op);
    case OpKind::matmul:
      return b.products();
    case OpKind::sdpa:
      return b.attention();
    case OpKind::vocabulary_loss:
      if (op.fused != nullptr) return scaling_kernels(view, op);
      return vocabulary_loss_kernels(view, op, Issue::autograd);
    case OpKind::power:  // grad·(c·xᶜ⁻¹)
      return b.node(KernelKind::elementwise, 2 * b.whole(), b.count())
          .then(KernelKind::elementwise, 2 * b.whole(), b.count())
          .then(KernelKind::elementwise, 3 * b.whole(), b.count())
          .take();
    case OpKind::mul:
      return b.mul();
    case OpKind::add:
    case OpKind::copy:
    case OpKind::fold_heads:
      return b.broadcast();
    case OpKind::function:
      return function_kernels(view, op, view.graph().function(op).backward, Issue::autograd);
    case OpKind::batch:
    case OpKind::cat:
    case OpKind::sum:
    case OpKind::communicate:
    case OpKind::parameter:
      return b.nothing().take();
    case OpKind::view:
      return b.view_of_part();
    case OpKind::to_f32:
    case OpKind::to_adapter:
    case OpKind::to_like:
    case OpKind::to_compute:
      b.add(cast_kernel(view, view.extent_of(op.out), b.type(), view.state(op.in[0]).dtype,
                        Issue::autograd));
      return b.take();
    default:
      return mapped(view, op);
  }
}

}  // namespace shardplan::tape
