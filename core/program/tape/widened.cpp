#include "program/tape/widened.h"

#include "program/tape/exchange_rules.h"
#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

bool widens(const GraphView& view, const Op& op) {
  return op.weight != kNone && view.parameter(op.weight).widened();
}

/// Elements that have a scale.
std::int64_t scales_of(const Parameter& weight) {
  return ceil_div(weight.numel, format_of(weight.stored).parts.front().columns);
}

bool quantizes_scales(const Parameter& weight) {
  return !format_of(weight.stored).parts[1].what.empty();
}

}  // namespace

WidenedWeight::WidenedWeight(Parts& parts, const Op& op, Pass pass) : p_(parts) {
  if (!widens(p_.view, op)) return;
  const Parameter& weight = p_.view.parameter(op.weight);
  const auto allocate = [&](std::int64_t elements, DType type) {
    return p_.storages.allocate(checked_mul(elements, size_of(type)), Category::workspace);
  };
  if (quantizes_scales(weight) && pass != Pass::generation) {
    held_[0] = allocate(scales_of(weight), DType::f32);
    if (pass == Pass::forward) held_[1] = allocate(scales_of(weight), DType::f32);
  }
  held_[2] = allocate(weight.numel, p_.view.parameter_type(op.weight));
  if (pass == Pass::backward) drop(held_[0]);
  if (pass == Pass::generation) drop(held_[2]);
}

void WidenedWeight::drop(StorageId& id) {
  p_.storages.unref(id);
  id = kExternal;
}

WidenedWeight::~WidenedWeight() {
  for (const StorageId id : held_) p_.storages.unref(id);
}

std::int64_t widened_bytes(const GraphView& view, const Op& op) {
  if (!widens(view, op)) return 0;
  const Parameter& weight = view.parameter(op.weight);
  const std::int64_t scales = quantizes_scales(weight) ? checked_mul(scales_of(weight), 8) : 0;
  return checked_add(view.bytes_of(weight, view.parameter_type(op.weight)), scales);
}

const Op* unpacked_by(const GraphView& view, const Op& op) {
  if (op.kind != OpKind::copy) return nullptr;
  const Op* stored = maker_of(view.graph(), op.in[0]);
  const bool packed =
      stored != nullptr && stored->kind == OpKind::parameter && widens(view, *stored);
  return packed ? stored : nullptr;
}

KernelList widening_kernels(const GraphView& view, const Op& op, Issue first) {
  KernelList list;
  if (!widens(view, op)) return list;
  const Parameter& weight = view.parameter(op.weight);
  const DType type = view.parameter_type(op.weight);
  const auto scales = static_cast<double>(scales_of(weight));
  const auto elements = static_cast<double>(weight.numel);
  constexpr double kWide = 4;  // bytes of a scale
  if (quantizes_scales(weight)) {
    list.add(memory_kernel(KernelKind::strided, first, DType::f32, (1 + kWide) * scales, scales));
    list.add(memory_kernel(KernelKind::elementwise, Issue::nested, DType::f32, 2 * kWide * scales,
                           scales));
  }
  const double packed = elements * format_of(weight.stored).bits / 8;
  // bitsandbytes' kernel takes 1.2 to 1.4 ps an element (profiled steps of Qwen2.5-3B, Mistral and
  // TinyLlama on an H200) where others that go element by element take 2.7.
  constexpr double kOfStrided = 0.47;
  list.add(memory_kernel(KernelKind::strided, list.size() == 0 ? first : Issue::nested, type,
                         packed + kWide * scales + elements * static_cast<double>(size_of(type)),
                         kOfStrided * elements));
  return list;
}

}  // namespace shardplan::tape
