#include "program/tape/narrow.h"

#include <utility>

#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

constexpr std::int64_t kWide = 4;  ///< bytes of an element while it is scaled

std::int64_t elements_of(const GraphView& view, ValueId value) {
  return elements(view.extent_of(value), view.sizes());
}

/// Of a product's kernels.
Issue first_of(const ProductRecipe& recipe, Issue otherwise) {
  return recipe.cast == OperandCast::eager ? Issue::narrow : otherwise;
}

}  // namespace

NarrowOperands::~NarrowOperands() {
  end_product();
  for (const StorageId id : held_) p_.storages.unref(id);
}

std::int64_t NarrowOperands::pack(std::int64_t elements, bool keeps) {
  const auto allocate = [&](std::int64_t bytes) {
    const Category category = keeps ? Category::activations : Category::workspace;
    held_.push_back(p_.storages.allocate(bytes, category));
    if (keeps) kept_.push_back(held_.back());
    return bytes;
  };
  const std::int64_t packed =
      allocate(ceil_div(checked_mul(elements, format_of(recipe_.type).bits), 8));
  return recipe_.block == 0 ? packed : packed + allocate(ceil_div(elements, recipe_.block));
}

void NarrowOperands::launch_on_scales(std::int32_t kernels) {
  Kernel scale = memory_kernel(KernelKind::elementwise, Issue::nested, DType::f32, 64, 8);
  scale.calls = kernels;
  p_.writer.launch(scale);
}

void NarrowOperands::cast(std::int64_t elements, DType type, Issue first, Layout layout) {
  if (recipe_.cast == OperandCast::eager) return cast_eagerly(elements, type, first, layout);
  const std::int64_t bytes = checked_mul(elements, size_of(type)) + pack(elements, false);
  p_.writer.launch(memory_kernel(KernelKind::elementwise, first, type, static_cast<double>(bytes),
                                 static_cast<double>(elements)));
}

void NarrowOperands::cast_both(std::int64_t elements, DType type, Issue first, std::int64_t keep) {
  const auto count = static_cast<double>(elements);
  const double read = count * static_cast<double>(size_of(type));
  if (recipe_.maxima_first)
    p_.writer.launch(memory_kernel(KernelKind::row_reduction, first, type, read, count));
  double bytes = read;
  for (std::int64_t layout = 0; layout < 2; ++layout)
    bytes += static_cast<double>(pack(elements, layout < keep));
  p_.writer.launch(memory_kernel(KernelKind::elementwise,
                                 recipe_.maxima_first ? Issue::nested : first, type, bytes, count));
}

void NarrowOperands::find_largest(std::int64_t elements, DType type) {
  if (!recipe_.maxima_of_copies) return;
  const auto count = static_cast<double>(elements);
  const auto width = static_cast<double>(size_of(type));
  const StorageId wide = p_.storages.allocate(checked_mul(elements, kWide), Category::workspace);
  const StorageId sizes = p_.storages.allocate(checked_mul(elements, kWide), Category::workspace);
  p_.storages.unref(wide);
  p_.storages.unref(sizes);
  const auto launch = [&](KernelKind kind, double bytes_each) {
    p_.writer.launch(memory_kernel(kind, Issue::nested, type, bytes_each * count, count));
  };
  launch(KernelKind::strided, width + kWide);
  launch(KernelKind::elementwise, 2 * kWide);
  launch(KernelKind::row_reduction, kWide);
}

void NarrowOperands::invert_scales() {
  if (recipe_.cast == OperandCast::eager) launch_on_scales(2);
}

void NarrowOperands::scale_result(std::int64_t elements) {
  if (!recipe_.by_rows) return;
  launch_on_scales(2);
  const auto count = static_cast<double>(elements);
  p_.writer.launch(
      memory_kernel(KernelKind::strided, Issue::nested, DType::f32, kWide * count, count));
  p_.writer.launch(
      memory_kernel(KernelKind::strided, Issue::nested, DType::f32, 2 * kWide * count, count));
}

void NarrowOperands::cast_eagerly(std::int64_t elements, DType type, Issue first, Layout layout) {
  const auto count = static_cast<double>(elements);
  const auto width = static_cast<double>(size_of(type));
  const auto allocate = [&](std::int64_t bytes_each) {
    return p_.storages.allocate(checked_mul(elements, bytes_each), Category::workspace);
  };
  const auto launch = [&](KernelKind kind, Issue issue, double bytes_each) {
    p_.writer.launch(memory_kernel(kind, issue, type, bytes_each * count, count));
  };
  // The largest magnitude, and from it the scale: numbers or rows of them. The largest of all
  // (ReduceAllOps.cpp, max) is looked for in a contiguous copy.
  const StorageId magnitudes = allocate(size_of(type));
  launch(KernelKind::elementwise, first, 2 * width);
  if (layout == Layout::turned && !recipe_.by_rows) {
    p_.storages.unref(allocate(size_of(type)));
    launch(KernelKind::strided, Issue::nested, 2 * width);
  }
  p_.storages.unref(magnitudes);
  launch(KernelKind::row_reduction, Issue::nested, width);
  // Of rows it is rounded to a power of two: a logarithm, its floor and an exponential.
  launch_on_scales(recipe_.by_rows ? 8 : 5);
  const bool copies = type != DType::f32;
  const StorageId wide = copies ? allocate(kWide) : kExternal;
  if (copies) launch(KernelKind::strided, Issue::nested, width + kWide);
  const StorageId scaled = allocate(kWide);
  if (copies) p_.storages.unref(wide);
  const StorageId clamped = allocate(kWide);
  held_.push_back(allocate(1));
  p_.storages.unref(clamped);
  p_.storages.unref(scaled);
  launch(KernelKind::elementwise, Issue::nested, 2 * kWide);
  launch(KernelKind::elementwise, Issue::nested, 2 * kWide);
  launch(KernelKind::elementwise, Issue::nested, kWide + 1);
}

void NarrowOperands::turn(std::int64_t elements) {
  if (recipe_.cast != OperandCast::eager) return;
  turned_.push_back(p_.storages.allocate(elements, Category::workspace));
  p_.writer.launch(memory_kernel(KernelKind::strided, Issue::nested, DType::e4m3,
                                 2 * static_cast<double>(elements), static_cast<double>(elements)));
}

void NarrowOperands::end_product() {
  for (const StorageId id : std::exchange(turned_, {})) p_.storages.unref(id);
}

void narrow_forward(const Parts& p, const Op& op, NarrowOperands& operands, bool has_input) {
  const GraphView& view = p.view;
  const std::int64_t inputs = elements_of(view, op.in[0]);
  const std::int64_t weights = view.parameter(op.weight).numel;
  const DType input = view.read_type(op, 0), weight = view.parameter_type(op.weight);
  const ProductRecipe& recipe = view.recipe();
  if (recipe.cast != OperandCast::kept) {
    operands.cast(inputs, input, first_of(recipe, Issue::python));
    if (!view.has_narrow_weight(op)) operands.cast(weights, weight, Issue::nested, Layout::turned);
    operands.invert_scales();
    return;
  }
  if (!has_input && op.kept == kNone) {
    operands.cast_both(inputs, input, Issue::python, 1);
  } else if (!has_input) {  // what other ranks have given is not kept, but gathered again
    operands.cast(inputs, input, Issue::python);
    operands.cast_both(elements_of(view, op.kept), input, Issue::nested, 1);
  }
  if (p.options.casts_once) return;
  operands.find_largest(weights, weight);
  operands.cast_both(weights, weight, Issue::nested, recipe.layouts);
}

void narrow_for_input(const GraphView& view, const Op& op, NarrowOperands& operands) {
  const std::int64_t results = elements_of(view, op.out);
  const DType type = view.state(op.out).dtype;
  if (view.recipe().cast == OperandCast::kept)
    return operands.cast_both(results, type, Issue::autograd, 0);
  operands.cast(results, type, first_of(view.recipe(), Issue::autograd));
  if (!view.has_narrow_weight(op))
    operands.cast(view.parameter(op.weight).numel, view.parameter_type(op.weight), Issue::nested,
                  Layout::turned);
  operands.turn(view.parameter(op.weight).numel);
  operands.invert_scales();
  operands.scale_result(elements_of(view, op.in[0]));
}

void narrow_for_weight(const GraphView& view, const Op& op, NarrowOperands& operands) {
  if (view.recipe().cast == OperandCast::kept) return;
  operands.cast(elements_of(view, op.out), view.state(op.out).dtype,
                first_of(view.recipe(), Issue::nested));
  operands.cast(elements_of(view, op.in[0]), view.read_type(op, 0), Issue::nested);
  operands.turn(elements_of(view, op.out));
  operands.turn(elements_of(view, op.in[0]));
  operands.invert_scales();
  operands.scale_result(view.parameter(op.weight).numel);
}

}  // namespace shardplan::tape
