#include "program/tape/loss_parts.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

/// torch.chunk: parts of as many rows, and a last one of fewer.
struct LossRows {
  std::int64_t tokens = 0, width = 0, vocabulary = 0, each = 0;

  LossRows(const GraphView& view, const Op& op) {
    const Extent in = view.extent_of(op.in[0]);
    tokens = units(in, view.sizes());
    width = in.per;
    vocabulary = view.parameter(op.weight).numel / width;
    const std::int64_t wide = checked_mul(checked_mul(tokens, vocabulary), 4);
    each = ceil_div(tokens, std::min(tokens, ceil_div(wide, op.fused->part_bytes)));
  }
  std::int64_t count() const { return ceil_div(tokens, each); }
  std::int64_t of(std::int64_t part) const { return std::min(each, tokens - part * each); }
};

class LossParts {
 public:
  LossParts(Parts& p, const Op& op)
      : p_(p),
        op_(op),
        rows_(p.view, op),
        compute_(p.view.regime().compute),
        weight_type_(p.view.parameter_type(op.weight)),
        own_(p.view.state(op.in[0]).dtype) {}

  void run(std::size_t i) {
    const bool keeps = p_.keeps();
    input_ = keeps && p_.view.state(op_.in[0]).needs_grad;
    trains_ = keeps && p_.view.trains(op_.weight);
    if (input_) p_.saved.move_in(i, logits(checked_mul(rows_.tokens, rows_.width), own_));
    for (std::int64_t k = 0; k < rows_.count(); ++k) part(rows_.of(k));
    if (sum_ != kExternal) p_.saved.move_in(i, sum_);
  }

 private:
  StorageId logits(std::int64_t elements, DType type) {
    return p_.storages.allocate(checked_mul(elements, size_of(type)), Category::logits_and_loss);
  }
  StorageId weight(DType type) {
    return p_.storages.allocate(p_.view.bytes_of(p_.view.parameter(op_.weight), type),
                                Category::gradients);
  }
  void drop(StorageId id) { p_.storages.unref(id); }

  /// Autocast's copy of a weight that trains is made once.
  StorageId cast_weight() {
    if (weight_type_ == compute_) return kExternal;
    const bool cached = p_.view.trains(op_.weight) && weight_type_ == DType::f32;
    if (cached && p_.casts.find(op_.weight) != kExternal) return kExternal;
    const std::int64_t bytes = p_.view.bytes_of(p_.view.parameter(op_.weight), compute_);
    const StorageId copy = p_.storages.allocate(bytes, Category::other);
    if (!cached) return copy;
    p_.casts.add(op_.weight, copy);
    return kExternal;
  }

  void part(std::int64_t rows) {
    const std::int64_t words = checked_mul(rows, rows_.vocabulary);
    const StorageId narrow_rows =
        own_ != compute_ ? logits(checked_mul(rows, rows_.width), compute_) : kExternal;
    const StorageId narrow_weight = cast_weight();
    const StorageId made = logits(words, compute_);
    const StorageId wide = compute_ != DType::f32 ? logits(words, DType::f32) : kExternal;
    const StorageId shares = logits(words, DType::f32);  // log_softmax
    drop(wide);
    drop(made);
    if (!input_ && !trains_) {
      for (const StorageId id : {shares, narrow_weight, narrow_rows}) drop(id);
      return;
    }
    const StorageId of_shares = logits(words, DType::f32);
    StorageId gradient = logits(words, DType::f32);
    drop(of_shares);
    drop(shares);
    if (compute_ != DType::f32) {
      const StorageId narrow = logits(words, compute_);
      drop(std::exchange(gradient, narrow));
    }
    products(rows, gradient);
    drop(narrow_weight);
    drop(narrow_rows);
  }

  /// The input's rows are added to their place in its gradient, the weight's to that of the parts
  /// before.
  void products(std::int64_t rows, StorageId gradient) {
    const std::int64_t numbers = checked_mul(rows, rows_.width);
    const StorageId of_rows = input_ ? logits(numbers, compute_) : kExternal;
    StorageId of_weight = trains_ ? weight(compute_) : kExternal;
    drop(gradient);
    const StorageId widened = input_ && own_ != compute_ ? logits(numbers, own_) : kExternal;
    drop(of_rows);
    drop(widened);
    if (!trains_) return;
    if (weight_type_ != compute_) {
      const StorageId wide = weight(weight_type_);
      drop(std::exchange(of_weight, wide));
    }
    if (sum_ == kExternal)
      sum_ = of_weight;
    else
      drop(of_weight);
  }

  Parts& p_;
  const Op& op_;
  LossRows rows_;
  DType compute_, weight_type_, own_;
  bool input_ = false, trains_ = false;
  StorageId sum_ = kExternal;
};

}  // namespace

void loss_parts_forward(Parts& p, std::size_t i) {
  LossParts(p, p.graph().ops()[i]).run(i);
}

KernelList loss_parts_kernels(const GraphView& view, const Op& op, bool keeps) {
  const LossRows rows(view, op);
  const auto calls = static_cast<std::int32_t>(rows.count());
  const DType type = view.regime().compute;
  const double logits = static_cast<double>(rows.tokens) * static_cast<double>(rows.vocabulary) /
                        static_cast<double>(calls);
  const auto size = static_cast<double>(size_of(type));
  KernelList list;
  const auto add = [&](Kernel kernel) {
    kernel.calls = calls;
    list.add(kernel);
  };
  const auto sweep = [&](KernelKind kind, Issue issue, double bytes) {
    add(memory_kernel(kind, issue, DType::f32, bytes * logits, logits));
  };
  Kernel product = product_kernel(view, op, type);
  product.m = rows.each;
  product.issue = Issue::python;
  add(product);
  sweep(KernelKind::elementwise, Issue::python, size + 4);
  sweep(KernelKind::softmax, Issue::python, 8);
  if (!keeps) return list;
  sweep(KernelKind::elementwise, Issue::autograd, 4);  // zeros, and a number in each row
  sweep(KernelKind::log_softmax_backward, Issue::autograd, 12);
  sweep(KernelKind::elementwise, Issue::autograd, 4 + size);
  if (view.state(op.in[0]).needs_grad) {
    Kernel of_rows = product;
    of_rows.issue = Issue::autograd;
    std::swap(of_rows.n, of_rows.k);
    add(of_rows);
    const double numbers = view.count_of(op.in[0]) / calls;
    add(memory_kernel(KernelKind::elementwise, Issue::autograd, view.state(op.in[0]).dtype,
                      3 * view.moved(op.in[0], view.state(op.in[0]).dtype) / calls, numbers));
  }
  if (!view.trains(op.weight)) return list;
  Kernel of_weight = product;
  of_weight.issue = Issue::nested;
  of_weight.m = product.n;
  of_weight.n = product.k;
  of_weight.k = product.m;
  of_weight.sums_rows = true;
  add(of_weight);
  const Parameter& head = view.parameter(op.weight);
  const DType kept = view.parameter_type(op.weight);
  Kernel sum = memory_kernel(KernelKind::elementwise, Issue::autograd, kept,
                             3 * static_cast<double>(view.bytes_of(head, kept)),
                             static_cast<double>(head.numel));
  sum.calls = calls - 1;
  if (calls > 1) list.add(sum);
  return list;
}

}  // namespace shardplan::tape
