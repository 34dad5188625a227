#include "program/tape/narrow.h"

#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

constexpr std::int64_t kWide = 4;  ///< bytes of an element while it is scaled

std::int64_t elements_of(const GraphView& view, ValueId value) {
  return elements(view.extent_of(value), view.sizes());
}

}  // namespace

NarrowOperands::~NarrowOperands() {
  for (const StorageId id : held_) p_.storages.unref(id);
}

void NarrowOperands::cast(std::int64_t elements, DType type, Issue first) {
  const auto count = static_cast<double>(elements);
  const auto width = static_cast<double>(size_of(type));
  const auto allocate = [&](std::int64_t bytes_each) {
    return p_.storages.allocate(checked_mul(elements, bytes_each), Category::workspace);
  };
  const auto launch = [&](KernelKind kind, Issue issue, double bytes_each) {
    p_.writer.launch(memory_kernel(kind, issue, type, bytes_each * count, count));
  };
  // The largest magnitude, and from it the scale: numbers or rows of them.
  p_.storages.unref(allocate(size_of(type)));
  launch(KernelKind::elementwise, first, 2 * width);
  launch(KernelKind::row_reduction, Issue::nested, width);
  constexpr std::int32_t kScaleKernels = 6;
  Kernel scale = memory_kernel(KernelKind::elementwise, Issue::nested, DType::f32, 64, 8);
  scale.calls = kScaleKernels;
  p_.writer.launch(scale);
  const StorageId wide = allocate(kWide);
  const StorageId scaled = allocate(kWide);
  p_.storages.unref(wide);
  const StorageId clamped = allocate(kWide);
  held_.push_back(allocate(1));
  p_.storages.unref(clamped);
  p_.storages.unref(scaled);
  launch(type == DType::f32 ? KernelKind::elementwise : KernelKind::strided, Issue::nested,
         type == DType::f32 ? 0 : width + kWide);
  launch(KernelKind::elementwise, Issue::nested, 2 * kWide);
  launch(KernelKind::elementwise, Issue::nested, 2 * kWide);
  launch(KernelKind::elementwise, Issue::nested, kWide + 1);
}

void NarrowOperands::turn(std::int64_t elements) {
  p_.storages.unref(p_.storages.allocate(elements, Category::workspace));
  p_.writer.launch(memory_kernel(KernelKind::strided, Issue::nested, DType::e4m3,
                                 2 * static_cast<double>(elements), static_cast<double>(elements)));
}

void narrow_forward(const GraphView& view, const Op& op, NarrowOperands& operands) {
  operands.cast(elements_of(view, op.in[0]), view.read_type(op, 0), Issue::python);
  operands.cast(view.parameter(op.weight).numel, view.parameter_type(op.weight), Issue::nested);
}

void narrow_for_input(const GraphView& view, const Op& op, NarrowOperands& operands) {
  operands.cast(elements_of(view, op.out), view.state(op.out).dtype, Issue::autograd);
  operands.cast(view.parameter(op.weight).numel, view.parameter_type(op.weight), Issue::nested);
  operands.turn(view.parameter(op.weight).numel);
}

void narrow_for_weight(const GraphView& view, const Op& op, NarrowOperands& operands) {
  operands.cast(elements_of(view, op.out), view.state(op.out).dtype, Issue::nested);
  operands.cast(elements_of(view, op.in[0]), view.read_type(op, 0), Issue::nested);
  operands.turn(elements_of(view, op.out));
  operands.turn(elements_of(view, op.in[0]));
}

}  // namespace shardplan::tape
