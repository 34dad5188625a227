// torch/csrc/autograd/functions/tensor.cpp, CopySlices: the gradient of the whole tensor is copied,
// its part that was written is cloned for the node of the sum, and what that returns is copied
// back. The view itself is read again through AsStridedBackward, which writes its gradient into
// zeros of the whole (torch/csrc/autograd/FunctionsManual.cpp, as_strided_backward).
#include "program/tape/in_place.h"

namespace shardplan::tape {
namespace {

/// What `x[1:] += y` writes: as many rows as `x` has, but one.
Extent part_of(const GraphView& view, const Op& op) {
  const Extent whole = view.extent_of(op.in[0]);
  return {whole.per - view.extent_of(op.in[1]).per, whole.scale};
}

/// A gradient in the type of the sum, in that of what was added.
StorageId narrowed(Parts& p, ValueId value, StorageId gradient, DType type) {
  const DType own = p.view.state(value).dtype;
  if (own == type || !p.view.state(value).needs_grad) return gradient;
  const StorageId cast = p.gradients.allocate_like(value, own);
  p.storages.unref(gradient);
  return cast;
}

void view_backward(Parts& p, const Op& op, DType type) {
  const StorageId spread = p.gradients.allocate_like(op.out, type);
  p.gradients.drop(op.out);
  const StorageId result = p.gradients.allocate_like(op.in[0], type);
  const StorageId clone = p.gradients.allocate_like(op.out, type);
  p.storages.unref(spread);
  p.gradients.give(op.in[0], result);
  p.gradients.give(op.in[1], narrowed(p, op.in[1], clone, type));
}

/// Python assigns the slice to itself behind the sum, which autograd records as a copy.
void part_backward(Parts& p, const Op& op, DType type) {
  const Extent whole = p.view.extent_of(op.in[0]), part = part_of(p.view, op);
  const StorageId assigned = p.temporary(whole, type);
  const StorageId copied = p.temporary(part, type);
  p.storages.unref(p.temporary(part, type));  // zeros, for what the copy wrote over
  p.gradients.drop(op.out);
  const StorageId spread = p.temporary(whole, type);
  p.storages.unref(copied);
  p.storages.unref(spread);  // added to the other
  const StorageId result = p.gradients.allocate_like(op.in[0], type);
  const StorageId clone = p.temporary(part, type);
  p.storages.unref(assigned);
  const StorageId sum = p.gradients.allocate_like(op.in[1], type);
  p.storages.unref(clone);
  p.gradients.give(op.in[0], result);
  p.gradients.give(op.in[1], narrowed(p, op.in[1], sum, type));
}

}  // namespace

bool writes_view(const Op& op) {
  return op.in_place == InPlace::view || op.in_place == InPlace::part;
}

void written_view_backward(Parts& p, const Op& op) {
  const DType type = p.view.state(op.out).dtype;
  return op.in_place == InPlace::view ? view_backward(p, op, type) : part_backward(p, op, type);
}

KernelList written_view_kernels(const GraphView& view, const Op& op) {
  const DType type = view.state(op.out).dtype;
  KernelList list;
  const auto add = [&](KernelKind kind, Issue issue, double elements, double passes) {
    list.add(memory_kernel(kind, issue, type,
                           passes * elements * static_cast<double>(size_of(type)), elements));
  };
  const double whole = view.count_of(op.out);
  const auto written = [&](double part) {  // a copy, a clone, and the copy back
    add(KernelKind::strided, Issue::autograd, whole, 2);
    add(KernelKind::strided, Issue::inner, part, 2);
    add(KernelKind::strided, Issue::inner, part, 2);
  };
  const auto spread = [&](double part) {  // zeros, and the copy into them
    add(KernelKind::elementwise, Issue::autograd, whole, 1);
    add(KernelKind::strided, Issue::inner, part, 2);
  };
  if (op.in_place == InPlace::view) {
    spread(whole);
    written(whole);
    return list;
  }
  const double part = static_cast<double>(elements(part_of(view, op), view.sizes()));
  written(part);
  add(KernelKind::elementwise, Issue::inner, part, 1);
  spread(part);
  add(KernelKind::elementwise, Issue::inner, whole, 3);
  written(part);
  add(KernelKind::column_sum, Issue::inner, part, 1);
  return list;
}

}  // namespace shardplan::tape
