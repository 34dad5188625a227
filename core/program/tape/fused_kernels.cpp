#include "program/tape/fused_kernels.h"

#include <algorithm>

#include "program/tape/kernels.h"
#include "program/tape/loss_chunks.h"
#include "program/tape/loss_parts.h"

namespace shardplan::tape {
namespace {

/// Whether products read a copy of the weight. Autocast keeps the one that the input's gradient
/// reads; the logits read a transposed view, of which each chunk makes its own.
bool casts_head(const GraphView& view, const Op& op) {
  const DType compute = view.regime().compute;
  return view.regime().autocast() &&
         (view.parameter_type(op.weight) != compute || view.state(op.in[0]).dtype != compute);
}

/// Autocast's copy of a weight that trains, as the input's gradient leaves it.
void cache_head(Parts& p, const Op& op) {
  const GraphView& view = p.view;
  const DType compute = view.regime().compute;
  const bool kept = view.trains(op.weight) && view.parameter_type(op.weight) == DType::f32 &&
                    view.state(op.in[0]).needs_grad;
  if (!kept || p.casts.find(op.weight) != kExternal) return;
  const std::int64_t bytes = view.bytes_of(view.parameter(op.weight), compute);
  p.casts.add(op.weight, p.storages.allocate(bytes, Category::other));
}

/// The sums of parameters' gradients on each multiprocessor, in fp32.
std::int64_t partial_bytes(const Parts& p, const Op& op) {
  if (!p.view.trains(op.weight)) return 0;
  const std::int64_t rows = checked_mul(op.fused->partial_sums, p.options.multiprocessors);
  return checked_mul(checked_mul(rows, p.view.parameter(op.weight).numel), 4);
}

/// Of a loss, a number in fp32, the logits' own.
DType gradient_type(const Parts& p, const Op& op) {
  return p.view.state(op.kind == OpKind::vocabulary_loss ? op.in[0] : op.out).dtype;
}

void give_inputs(Parts& p, std::size_t i, StorageId g) {
  const Op& op = p.graph().ops()[i];
  const auto give = [&](std::size_t k, StorageId id) {
    p.storages.ref(id);
    p.gradients.give(op.in[k], id);
  };
  switch (op.fused->gradients) {
    case GradientPlace::result:
      if (p.view.state(op.in[0]).needs_grad) give(0, g);
      return;
    case GradientPlace::inputs:
      for (std::size_t k = 0; GraphView::reads(op, k); ++k)
        if (p.view.state(op.in[k]).needs_grad) give(k, p.saved.at(i, k));
      return;
    case GradientPlace::fresh:
      if (!p.view.state(op.in[0]).needs_grad) return;
      p.gradients.give(op.in[0], p.gradients.allocate_like(op.in[0], gradient_type(p, op)));
      return;
  }
}

/// One tile of logits, in the compute type; of a weight in another type a cast part of it too.
struct Tile {
  std::int64_t tokens = 0, words = 0, parts = 0;  ///< parts: how many there are
  std::int64_t logits_bytes = 0, cast_bytes = 0;

  Tile(const GraphView& view, const Op& op, const LossChunks& loss) {
    const DType compute = view.regime().compute;
    tokens = std::min(loss.tokens, op.fused->tile.tokens);
    words = op.fused->tile.words > 0 ? op.fused->tile.words : loss.vocabulary;
    parts = checked_mul(ceil_div(loss.tokens, tokens), ceil_div(loss.vocabulary, words));
    const std::int64_t each = op.fused->tile.bytes > 0 ? op.fused->tile.bytes : size_of(compute);
    logits_bytes = checked_mul(checked_mul(tokens, words), each);
    if (view.parameter_type(op.weight) != compute)
      cast_bytes = checked_mul(checked_mul(words, loss.width), size_of(compute));
  }
};

/// What a product that adds to the weight's gradient moves beside its own result: it reads the sum,
/// and both are as wide as that is. Of each of `calls`, over `share` of the weight; above 1:
/// slower.
Kernel accumulation(const GraphView& view, const Op& op, DType sum, std::int32_t calls,
                    double share) {
  const DType product = view.regime().compute;
  const auto elements = share * static_cast<double>(view.parameter(op.weight).numel);
  const auto bytes = static_cast<double>(2 * size_of(sum) - size_of(product));
  Kernel kernel =
      memory_kernel(KernelKind::elementwise, Issue::nested, sum, bytes * elements, elements);
  kernel.calls = calls;
  return kernel;
}

/// Of a product that adds a chunk's share to the gradient where it lies (torch.addmm, out=), in the
/// compute type or, of fp32 weights, in fp32: so many elementwise passes over what accumulation()
/// counts. Six shapes of Liger's loss alone in bf16 on an H100, 32 to 256 rows a chunk: 1.72 to
/// 1.98, 1.8 in the mean. 64 of them in fp32 in a profiled step of Phi-4-mini on an H200 took
/// 1.98 ms each: 1.7 passes beside the product.
constexpr double kAddedInPlace = 1.8;

/// What a fused loss leaves for its backward pass. Without autograd nothing holds on to it when the
/// loss returns.
class LossResults {
 public:
  LossResults(Parts& p, std::size_t op) : p_(p), op_(op) {}
  void take(StorageId id) {
    if (p_.keeps())
      p_.saved.move_in(op_, id);
    else
      own_.push_back(id);
  }
  void end() {
    for (const StorageId id : own_) p_.storages.unref(id);
  }

 private:
  Parts& p_;
  std::size_t op_;
  std::vector<StorageId> own_;
};

/// Keeps a copy of the input's rows with labels, the labels, and two statistics a token.
void tiled_loss_forward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  const LossChunks loss(p.view, op);
  const Tile tile(p.view, op, loss);
  LossResults results(p, i);
  const auto keep = [&](std::int64_t elements, DType type) {
    results.take(
        p.storages.allocate(checked_mul(elements, size_of(type)), Category::logits_and_loss));
  };
  keep(checked_mul(loss.tokens, loss.width), p.view.state(op.in[0]).dtype);
  keep(loss.tokens, DType::i64);
  keep(loss.tokens, DType::f32);
  keep(loss.tokens, DType::f32);
  const StorageId logits = p.storages.allocate(tile.logits_bytes, Category::logits_and_loss);
  if (tile.cast_bytes > 0)
    p.storages.unref(p.storages.allocate(tile.cast_bytes, Category::workspace));
  p.storages.unref(logits);
  results.end();
}

/// Both gradients in fp32, and beside them what they are cast to; then the rows go back to where
/// they were taken from.
void tiled_loss_backward(Parts& p, const Op& op) {
  const LossChunks loss(p.view, op);
  const Tile tile(p.view, op, loss);
  const DType own = p.view.state(op.in[0]).dtype;
  const bool input = p.view.state(op.in[0]).needs_grad, weight = p.view.trains(op.weight);
  const bool narrow = p.view.parameter_type(op.weight) != DType::f32;
  const auto wide = [&](bool there, std::int64_t elements) {
    return there ? p.storages.allocate(checked_mul(elements, 4), Category::gradients) : kExternal;
  };
  const StorageId rows = wide(input, checked_mul(loss.tokens, loss.width));
  const StorageId sums = wide(weight, p.view.parameter(op.weight).numel);
  const StorageId logits = p.storages.allocate(tile.logits_bytes, Category::logits_and_loss);
  p.ask_for_workspace();
  if (tile.cast_bytes > 0)
    p.storages.unref(p.storages.allocate(tile.cast_bytes, Category::workspace));
  const StorageId cast =
      input && own != DType::f32 ? p.gradients.allocate_like(op.in[0], own) : kExternal;
  if (!narrow) p.storages.unref(sums);  // it is the gradient itself
  p.gradients.give_parameter(op.weight);
  // The function's variables go in the order in which it made them.
  if (cast != kExternal) p.storages.unref(rows);
  if (narrow) p.storages.unref(sums);
  p.storages.unref(logits);
  if (!input) return;
  p.gradients.give(op.in[0], p.gradients.allocate_like(op.in[0], own));
  p.storages.unref(cast != kExternal ? cast : rows);
}

KernelList tiled_loss_kernels(const GraphView& view, const Op& op, bool backward) {
  const DType type = view.regime().compute;
  const LossChunks loss(view, op);
  const Tile tile(view, op, loss);
  const auto calls = static_cast<std::int32_t>(tile.parts);
  Kernel product = product_kernel(view, op, type);
  product.issue = backward ? Issue::autograd : Issue::python;
  product.calls = calls;
  product.m = ceil_div(loss.tokens, ceil_div(loss.tokens, tile.tokens));
  // All are taken to be equally wide, but begin where whole tiles do: at multiples of 64.
  product.n = round_up(ceil_div(loss.vocabulary, ceil_div(loss.vocabulary, tile.words)), 64);
  KernelList list;
  list.add(product);
  const double logits = static_cast<double>(product.m) * static_cast<double>(product.n);
  Kernel fold =
      memory_kernel(KernelKind::softmax, Issue::nested, type,
                    (backward ? 2 : 1) * logits * static_cast<double>(size_of(type)), logits);
  fold.calls = calls;
  list.add(fold);
  if (!backward) return list;
  product.issue = Issue::nested;
  if (view.state(op.in[0]).needs_grad) {
    Kernel rows = product;
    std::swap(rows.n, rows.k);
    list.add(rows);
  }
  if (view.trains(op.weight)) {
    Kernel weight = product;
    weight.m = product.n;
    weight.n = product.k;
    weight.k = product.m;
    weight.sums_rows = true;
    list.add(weight);
    const auto words = static_cast<double>(ceil_div(loss.vocabulary, tile.words));
    list.add(accumulation(view, op, DType::f32, calls, 1 / words));
  }
  return list;
}

}  // namespace

void fused_kernel_backward(Parts& p, std::size_t i, StorageId g) {
  const Op& op = p.graph().ops()[i];
  const std::int64_t partial = partial_bytes(p, op);
  const StorageId sums =
      partial > 0 ? p.storages.allocate(partial, Category::workspace) : kExternal;
  give_inputs(p, i, g);
  p.storages.unref(sums);
  p.gradients.give_parameter(op.weight);
  p.gradients.give_parameter(op.bias);
}

namespace {

/// One chunk's products. Operands in other types than the products' are cast for each: from the
/// last argument to the first, save for autocast's own copy of the weight.
void run_chunk(Parts& p, const Op& op, const LossChunks& chunks) {
  const GraphView& view = p.view;
  const DType compute = view.regime().compute;
  const bool casts = casts_head(view, op);
  const bool casts_weight = casts && view.parameter_type(op.weight) != compute;
  const bool input = p.keeps() && view.state(op.in[0]).needs_grad;
  const auto weight = [&] {
    if (!casts_weight) return kExternal;
    return p.storages.allocate(view.bytes_of(view.parameter(op.weight), compute),
                               Category::workspace);
  };
  const auto rows = [&](bool there, std::int64_t width) {
    if (!there) return kExternal;
    return p.storages.allocate(checked_mul(checked_mul(chunks.chunk, width), size_of(compute)),
                               Category::logits_and_loss);
  };
  const bool casts_rows = casts && view.state(op.in[0]).dtype != compute;
  const StorageId turned = weight();
  const StorageId read = rows(casts_rows, chunks.width);
  const StorageId logits = rows(true, chunks.vocabulary);
  p.storages.unref(read);
  p.storages.unref(turned);
  if (input && casts) {
    cache_head(p, op);
    const StorageId copy = p.casts.find(op.weight) == kExternal ? weight() : kExternal;
    p.storages.unref(rows(true, chunks.width));  // written to its place in the gradient
    p.storages.unref(copy);
  }
  if (input && view.trains(op.weight)) p.storages.unref(rows(casts_rows, chunks.width));
  p.storages.unref(logits);
}

}  // namespace

void fused_loss_forward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  if (op.fused->tile.tokens > 0) return tiled_loss_forward(p, i);
  if (op.fused->part_bytes > 0) return loss_parts_forward(p, i);
  const GraphView& view = p.view;
  const LossChunks chunks(view, op);
  const Parameter& head = view.parameter(op.weight);
  const auto logits_and_loss = [&](std::int64_t elements, DType type) {
    return p.storages.allocate(checked_mul(elements, size_of(type)), Category::logits_and_loss);
  };
  const StorageId labels = logits_and_loss(chunks.tokens, DType::i64);
  LossResults results(p, i);
  // Liger makes the input's gradient whether it is asked for or not (liger_kernel 0.8.5,
  // ops/fused_linear_cross_entropy.py).
  if (view.state(op.in[0]).needs_grad || !p.keeps())
    results.take(
        logits_and_loss(checked_mul(chunks.tokens, chunks.width), view.state(op.in[0]).dtype));
  if (view.trains(op.weight) && p.keeps())
    results.take(p.storages.allocate(view.bytes_of(head, view.parameter_type(op.weight)),
                                     Category::gradients));
  const StorageId losses = logits_and_loss(chunks.tokens, DType::f32);
  // The third chunk and later ones find what the second has found.
  const std::int64_t unlike = casts_head(view, op) ? std::min<std::int64_t>(chunks.count(), 2) : 1;
  for (std::int64_t k = 0; k < unlike; ++k) run_chunk(p, op, chunks);
  p.storages.unref(losses);
  p.storages.unref(labels);
  results.end();
}

void fused_loss_backward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  if (op.fused->tile.tokens > 0) return tiled_loss_backward(p, op);
  const bool trains = p.view.trains(op.weight);
  if (p.saved.count(i) > (trains ? 1U : 0U)) {
    p.storages.ref(p.saved.at(i, 0));
    p.gradients.give(op.in[0], p.saved.at(i, 0));
  }
  if (trains && p.saved.count(i) > 0) {
    // What hooks have had is not written to: the table's other gradient is added to a third. From
    // the allocator's history of Qwen3 1.7B, whose head is tied.
    if (p.offloading.active()) p.saved.hold(p.saved.at(i, p.saved.count(i) - 1));
    p.saved.release_last(i);
  }
  p.gradients.give_parameter(op.weight);
}

void host_reads_labels(Parts& p) {
  p.writer.python_calls(2);  // compared with the label that is left out, and summed
  p.writer.host_waits();
}

void host_reads_gradient(Parts& p) {
  p.writer.python_calls(2);  // a tensor of one, and whether both are equal
  p.writer.host_waits();
}

KernelList fused_loss_kernels(const GraphView& view, const Op& op, bool keeps) {
  if (op.fused->tile.tokens > 0) return tiled_loss_kernels(view, op, false);
  if (op.fused->part_bytes > 0) return loss_parts_kernels(view, op, keeps);
  const DType type = view.regime().compute;
  const LossChunks chunks(view, op);
  const auto calls = static_cast<std::int32_t>(chunks.count());
  const std::int64_t rows = ceil_div(chunks.tokens, chunks.count());
  Kernel product = product_kernel(view, op, type);
  product.calls = calls;
  product.m = rows;
  KernelList list;
  list.add(product);
  const double logits = static_cast<double>(rows) * static_cast<double>(chunks.vocabulary);
  Kernel loss = memory_kernel(KernelKind::softmax, Issue::nested, type,
                              3 * logits * static_cast<double>(size_of(type)), logits);
  loss.calls = calls;
  list.add(loss);
  if (!keeps) return list;
  if (view.state(op.in[0]).needs_grad) {
    Kernel input = product;
    input.issue = Issue::nested;
    std::swap(input.n, input.k);
    list.add(input);
  }
  if (view.trains(op.weight)) {
    Kernel weight = product;
    weight.issue = Issue::nested;
    weight.m = product.n;
    weight.n = product.k;
    weight.k = rows;
    weight.sums_rows = true;
    list.add(weight);
    const DType own = view.parameter_type(op.weight);
    list.add(accumulation(view, op, own, calls, kAddedInPlace));
  }
  if (casts_head(view, op)) {
    Kernel cast =
        weight_cast_kernel(view.parameter(op.weight), view.parameter_type(op.weight), type);
    cast.calls = view.trains(op.weight) ? calls + 1 : 2 * calls;
    list.add(cast);
  }
  return list;
}

KernelList scaling_kernels(const GraphView& view, const Op& op) {
  KernelList list;
  if (op.fused->tile.tokens > 0) return tiled_loss_kernels(view, op, true);
  if (!view.regime().divides_loss) return list;
  const DType type = view.state(op.in[0]).dtype;
  const auto scale = [&](double bytes, double elements) {
    list.add(memory_kernel(KernelKind::elementwise, Issue::autograd, type, 2 * bytes, elements));
  };
  scale(view.moved(op.in[0], type), view.count_of(op.in[0]));
  if (op.weight == kNone || !view.trains(op.weight)) return list;
  const Parameter& head = view.parameter(op.weight);
  scale(static_cast<double>(view.bytes_of(head, view.parameter_type(op.weight))),
        static_cast<double>(head.numel));
  return list;
}

}  // namespace shardplan::tape
