// Kernels of matrix products, attention and casts.
#include <algorithm>

#include "program/tape/kernels.h"

namespace shardplan::tape {

Kernel cast_kernel(const GraphView& view, Extent extent, DType from, DType to, Issue issue) {
  return memory_kernel(cast_kind(from, to), issue, from,
                       static_cast<double>(view.bytes_of(extent, from) + view.bytes_of(extent, to)),
                       static_cast<double>(elements(extent, view.sizes())));
}

Kernel weight_cast_kernel(const Parameter& weight, DType from, DType to) {
  return memory_kernel(cast_kind(from, to), Issue::nested, from,
                       static_cast<double>(checked_mul(weight.numel, size_of(from) + size_of(to))),
                       static_cast<double>(weight.numel));
}

Kernel cast_back_kernel(const GraphView& view, ParameterId id, DType from) {
  Kernel cast = weight_cast_kernel(view.parameter(id), from, view.parameter_type(id));
  cast.issue = Issue::autograd;
  return cast;
}

std::vector<ParameterId> widened_parameters(const GraphView& view, const Op& op) {
  std::vector<ParameterId> widened;
  if (op.kind != OpKind::layer_norm || op.fused != nullptr || !view.casts(op)) return widened;
  for (const ParameterId id : {op.weight, op.bias})
    if (id != kNone && size_of(view.parameter_type(id)) == 2) widened.push_back(id);
  return widened;
}

bool casts_bias(const GraphView& view, const Op& op) {
  return op.bias != kNone && view.casts(op) && !view.parameter(op.weight).quantized() &&
         view.parameter_type(op.bias) != view.regime().compute;
}

Kernel product_kernel(const GraphView& view, const Op& op, DType type) {
  const Parameter& w = view.parameter(op.weight);
  const Sizes& sizes = view.sizes();
  Kernel p;
  p.kind = KernelKind::product;
  p.type = view.multiplies_narrow(op) ? view.recipe().type : type;
  const bool experts = op.kind == OpKind::grouped_linear && w.shape.size() == 3;
  const std::int64_t each =
      std::max<std::int64_t>(1, experts ? w.numel / w.shape.front() : w.numel);
  const std::int64_t rows = std::max<std::int64_t>(1, elements(op.work, sizes) / each);
  p.batch = experts ? std::min(w.shape.front(), rows) : 1;
  p.m = std::max<std::int64_t>(1, rows / p.batch);
  p.n = op.kind == OpKind::fused_linear_loss
            ? each / view.extent_of(op.in[0]).per
            : std::max<std::int64_t>(1, elements(view.extent_of(op.out), sizes) / rows);
  p.k = std::max<std::int64_t>(1, each / std::max<std::int64_t>(1, p.n));
  return p;
}

namespace {

/// All experts have as many rows as the mean.
Kernel experts_product(const GraphView& view, const Op& op, DType type) {
  const auto numel = [&](ValueId value) { return elements(view.extent_of(value), view.sizes()); };
  const std::int64_t each = std::max<std::int64_t>(1, numel(op.in[1]) / op.experts);
  const std::int64_t rows = std::max<std::int64_t>(1, elements(op.work, view.sizes()) / each);
  Kernel p;
  p.kind = KernelKind::product;
  p.type = type;
  p.batch = std::min(op.experts, rows);
  p.m = std::max<std::int64_t>(1, rows / p.batch);
  p.n = std::max<std::int64_t>(1, numel(op.out) / rows);
  p.k = std::max<std::int64_t>(1, each / p.n);
  return p;
}

}  // namespace

Kernel batched_product_kernel(const GraphView& view, const Op& op, DType type) {
  if (op.experts > 0) return experts_product(view, op, type);
  const double work = static_cast<double>(elements(op.work, view.sizes()));
  const auto whole = [](double x) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(x + 0.5));
  };
  Kernel p;
  p.kind = KernelKind::product;
  p.type = type;
  p.m = whole(work / view.count_of(op.in[1]));
  p.n = whole(work / view.count_of(op.in[0]));
  p.k = whole(work / view.count_of(op.out));
  p.batch = whole(work /
                  (static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k)));
  return p;
}

namespace {

/// Heads of keys of all sequences. Under a mask they are repeated before.
std::int64_t key_batch(const GraphView& view, const Op& op, const Kernel& a) {
  if (a.masked || op.in[1] == kNone || a.batch != op.side.per * view.sizes().batch) return a.batch;
  const double each = static_cast<double>(a.n) * static_cast<double>(a.k);
  const auto heads = static_cast<std::int64_t>(view.count_of(op.in[1]) / each + 0.5);
  return std::clamp<std::int64_t>(heads, 1, a.batch);
}

}  // namespace

Kernel attention_kernel(const GraphView& view, const Op& op, DType type) {
  const Sizes& sizes = view.sizes();
  Kernel a;
  a.kind = KernelKind::attention;
  a.type = type;
  const std::int64_t heads = std::max<std::int64_t>(1, op.side.per);
  const std::int64_t rows = elements({1, op.side.scale}, sizes);
  const std::int64_t pairs = elements({1, op.work.scale}, sizes);
  a.n = std::max<std::int64_t>(1, pairs / std::max<std::int64_t>(1, rows));
  a.batch = heads * sizes.batch;
  a.m = std::max<std::int64_t>(1, rows / sizes.batch);
  a.k = std::max<std::int64_t>(1, op.work.per / heads / 2);
  if (op.within > 0) {
    a.n = op.within;
    a.k = std::max<std::int64_t>(1, a.k / op.within);
  }
  if (op.side.scale == Scale::patches && (op.within > 0 || op.one_by_one)) {
    const std::int64_t each = op.within > 0 ? op.within : sizes.patches;
    a.m = std::max<std::int64_t>(1, std::min(rows, each));
    a.batch = heads;
    a.calls = static_cast<std::int32_t>(std::max<std::int64_t>(1, rows / a.m));
    // With its slices and transformers' function; under the profiler the call itself takes 1.5
    // times as long as a linear layer's, its node in the backward pass as long as theirs.
    if (op.one_by_one) a.issue = Issue::linear;
  }
  a.masked = view.is_masked(op) || op.scores_bias != kNone;
  a.causal = op.causal && !a.masked && a.m > 1;
  a.drops = op.drops;
  a.key_batch = key_batch(view, op, a);
  return a;
}

bool multiplies_one_by_one(const GraphView& view, const Op& op, DType type) {
  const Graph& graph = view.graph();
  const bool grouped = op.experts > 0 || (op.kind == OpKind::grouped_linear &&
                                          view.parameter(op.weight).shape.size() == 3);
  return grouped && !graph.fuses() && !graph.routes_in_f32() && type != DType::bf16;
}

Kernel one_by_one(Kernel product) {
  product.issue = Issue::inner;
  product.calls = static_cast<std::int32_t>(product.batch);
  product.batch = 1;
  product.uneven = !product.sums_rows;
  return product;
}

KernelList math_attention_kernels(const GraphView& view, const Op& op, Issue issue) {
  const bool backward = issue == Issue::autograd;
  const double rows = view.moved(op.in[0], DType::f32);
  const double scores =
      static_cast<double>(view.bytes_of({op.side.per, op.work.scale}, DType::f32));
  KernelList list;
  for (int i = 0; i < (backward ? 4 : 3); ++i)
    list.add(memory_kernel(KernelKind::strided, i == 0 ? issue : Issue::nested, DType::f32,
                           2 * rows, rows / 4));
  Kernel product = attention_kernel(view, op, DType::f32);
  product.kind = KernelKind::product;
  product.issue = Issue::nested;
  product.causal = false;
  product.calls = backward ? 4 : 2;
  list.add(product);
  list.add(memory_kernel(backward ? KernelKind::softmax_backward : KernelKind::softmax,
                         Issue::nested, DType::f32, (backward ? 3 : 2) * scores, scores / 4));
  list.add(
      memory_kernel(KernelKind::elementwise, Issue::nested, DType::f32, 2 * scores, scores / 4));
  return list;
}

/// Sorting, its inverse, counts and masks forward, and what adds rows up by index backward
/// (transformers/integrations/moe.py, grouped_mm_experts_forward). A layer of Mixtral started 67
/// kernels more than its graph has, of both passes of two products (h200-tiny-steps.json).
KernelList routing_kernels(const GraphView& view, const Op& op, Issue issue) {
  KernelList list;
  const Graph& graph = view.graph();
  const bool grouped = op.kind == OpKind::grouped_linear || op.experts > 0;
  if (!grouped || graph.fuses() || graph.routes_in_f32()) return list;
  const bool backward = issue == Issue::autograd;
  constexpr double kIndex = 8;  // bytes
  const auto rows = static_cast<double>(elements({1, op.work.scale}, view.sizes()));
  const auto add = [&](Issue how, std::int32_t calls) {
    Kernel kernel =
        memory_kernel(KernelKind::elementwise, how, DType::i64, 2 * kIndex * rows, rows);
    kernel.calls = calls;
    list.add(kernel);
  };
  if (!backward) add(issue, 6);
  add(Issue::nested, backward ? 18 : 10);
  return list;
}

/// Of an fp32 copy: the copy, the largest, the difference, the exponential, the sum and the
/// quotient, each a kernel; backward one product and the cast. Else two kernels that read the
/// logits and write over them.
KernelList vocabulary_loss_kernels(const GraphView& view, const Op& op, Issue issue) {
  const DType type = view.state(op.in[0]).dtype;
  const double count = view.count_of(op.in[0]);
  const double narrow = view.moved(op.in[0], type);
  const bool backward = issue == Issue::autograd;
  KernelList list;
  if (op.side.per == 0) {
    list.add(memory_kernel(KernelKind::softmax, issue, type, (backward ? 2 : 3) * narrow, count));
    return list;
  }
  constexpr double kWide = 4;  // bytes
  list.add(memory_kernel(cast_kind(type, DType::f32), issue, type, narrow + kWide * count, count));
  Kernel sweeps = memory_kernel(KernelKind::elementwise, Issue::nested, DType::f32,
                                (backward ? 2 : 1.6) * kWide * count, count);
  sweeps.calls = backward ? 1 : 5;
  list.add(sweeps);
  return list;
}

}  // namespace shardplan::tape
