#include "program/tape/int8_product.h"

#include <algorithm>

#include "base/checked.h"
#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

constexpr std::int64_t kHalf = 2, kSum = 4, kScale = 4;  ///< bytes: fp16, int32, fp32

std::int64_t inputs_of(const GraphView& view, const Op& op) {
  return elements(view.extent_of(op.in[0]), view.sizes());
}
std::int64_t results_of(const GraphView& view, const Op& op) {
  return elements(view.extent_of(op.out), view.sizes());
}
std::int64_t rows_of(const GraphView& view, const Op& op) {
  return inputs_of(view, op) / view.parameter(op.weight).shape.back();
}

/// Whether something of this type has to be cast to fp16 or from it.
bool casts_half(const GraphView& view, const Op& op) {
  return view.read_type(op, 0) != DType::f16;
}

/// `first`: what starts with its first kernel.
KernelList int8_casts(const GraphView& view, const Op& op, Issue first) {
  KernelList list;
  const auto n = static_cast<double>(inputs_of(view, op));
  const auto type = view.read_type(op, 0);
  const auto add = [&](KernelKind kind, DType of, double bytes_each) {
    const Issue issue = list.size() == 0 ? first : Issue::nested;
    list.add(memory_kernel(kind, issue, of, bytes_each * n, n));
  };
  if (casts_half(view, op))
    add(KernelKind::elementwise, type, static_cast<double>(size_of(type)) + kHalf);
  add(KernelKind::elementwise, DType::f16, 2 * kHalf);
  add(KernelKind::elementwise, DType::f16, kHalf + 1);
  // The host asks whether there are any, whose answer is copied.
  list.add(memory_kernel(KernelKind::row_reduction, Issue::waited, DType::b1, n, n));
  list.add(memory_kernel(KernelKind::elementwise, Issue::nested, DType::b1, 1, 1));
  add(KernelKind::row_reduction, DType::f16, kHalf + 1);
  return list;
}

KernelList int8_results(const GraphView& view, const Op& op) {
  KernelList list;
  const auto n = static_cast<double>(results_of(view, op));
  const auto type = view.read_type(op, 0);
  list.add(memory_kernel(KernelKind::strided, Issue::nested, DType::f16, (kSum + kHalf) * n, n));
  if (casts_half(view, op))
    list.add(memory_kernel(cast_kind(DType::f16, type), Issue::nested, DType::f16,
                           (kHalf + static_cast<double>(size_of(type))) * n, n));
  return list;
}

}  // namespace

Int8Product::Int8Product(Parts& parts, const Op& op) : p_(parts) {
  if (!p_.view.multiplies_int8(op) || p_.mode == TapeMode::infer) return;
  cast_input(op);
  const std::int64_t results = results_of(p_.view, op);
  held_.push_back(allocate(checked_mul(results, kSum)));
  if (casts_half(p_.view, op)) held_.push_back(allocate(checked_mul(results, kHalf)));
}

/// int8_vectorwise_quant: of the fp16 copy the magnitudes, and which of them pass the threshold.
/// The weights and tokens of a run without outliers leave it there.
void Int8Product::cast_input(const Op& op) {
  const std::int64_t n = inputs_of(p_.view, op);
  const StorageId half = casts_half(p_.view, op) ? allocate(checked_mul(n, kHalf)) : kExternal;
  held_.push_back(allocate(checked_mul(rows_of(p_.view, op), kScale)));
  held_.push_back(allocate(n));
  const StorageId magnitudes = allocate(checked_mul(n, kHalf));
  const StorageId outliers = allocate(n);
  p_.storages.unref(magnitudes);
  p_.storages.unref(outliers);
  p_.storages.unref(half);
}

Int8Product::~Int8Product() {
  for (const StorageId id : held_) p_.storages.unref(id);
}

std::int64_t int8_bytes(const GraphView& view, const Op& op) {
  const std::int64_t n = inputs_of(view, op), results = results_of(view, op);
  const std::int64_t half = casts_half(view, op) ? kHalf : 0;
  const std::int64_t cast = checked_add(checked_mul(rows_of(view, op), kScale), n);
  // The result is not there yet.
  const std::int64_t looking = checked_add(cast, checked_mul(n, half + kHalf + 1)) -
                               view.bytes_of(op.out, view.read_type(op, 0));
  return std::max(looking, checked_add(cast, checked_mul(results, kSum + half)));
}

KernelList int8_kernels(const GraphView& view, const Op& op) {
  KernelList list = int8_casts(view, op, Issue::python);
  Kernel product = product_kernel(view, op, DType::i8);
  product.issue = Issue::nested;
  list.add(product);
  for (const Kernel& kernel : int8_results(view, op)) list.add(kernel);
  return list;
}

void launch_int8(Parts& p, const Op& op) {
  p.writer.launch(int8_casts(p.view, op, Issue::fused));
  p.writer.host_waits();
  Kernel product = product_kernel(p.view, op, DType::i8);
  product.issue = Issue::linear;
  p.writer.launch(product);
  p.writer.launch(int8_results(p.view, op));
}

std::int64_t widened_int8_bytes(const GraphView& view, const Op& op) {
  return view.bytes_of(view.parameter(op.weight), view.read_type(op, 0));
}

StorageId widened_int8(Parts& parts, const Op& op) {
  if (!parts.view.multiplies_int8(op)) return kExternal;
  return parts.storages.allocate(widened_int8_bytes(parts.view, op), Category::workspace);
}

/// `.to(copy=True)`, then multiplied by the rows' scales in place.
KernelList int8_widening(const GraphView& view, const Op& op, Issue first) {
  KernelList list;
  if (!view.multiplies_int8(op)) return list;
  const auto type = view.read_type(op, 0);
  const auto n = static_cast<double>(view.parameter(op.weight).numel);
  const auto width = static_cast<double>(size_of(type));
  list.add(memory_kernel(KernelKind::strided, first, type, (1 + width) * n, n));
  list.add(memory_kernel(KernelKind::strided, Issue::nested, type, 2 * width * n, n));
  return list;
}

}  // namespace shardplan::tape
