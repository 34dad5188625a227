// Which kernels eager PyTorch starts for an operation and its backward, and the bytes they move
// (tools/autograd/derivatives.yaml, aten/src/ATen/native/cuda).
#include <algorithm>

#include "program/op_rules.h"
#include "program/tape_state.h"

namespace shardplan {
namespace {

KernelKind forward_kind(OpKind kind) {
  switch (kind) {
    case OpKind::mean:
      return KernelKind::row_reduction;
    case OpKind::layer_norm:
    case OpKind::rms_norm:
      return KernelKind::layer_norm;
    case OpKind::softmax:
    case OpKind::softmax_f32:
    case OpKind::log_softmax:
      return KernelKind::softmax;
    case OpKind::embedding:
    case OpKind::gather_rows:
    case OpKind::scatter_rows:
      return KernelKind::embedding;
    case OpKind::cat:
    case OpKind::cache:
      return KernelKind::concatenate;
    case OpKind::copy:
    case OpKind::fold_heads:
      return KernelKind::strided;
    default:
      return KernelKind::elementwise;
  }
}

/// Widening is not vectorised (aten/src/ATen/native/cuda/CUDALoops.cuh, dynamic casting).
KernelKind cast_kind(DType from, DType to) {
  return size_of(to) > size_of(from) ? KernelKind::strided : KernelKind::elementwise;
}

}  // namespace

void TapeState::launch(const Kernel& kernel) {
  kernels_->push_back(kernel);
  if (options_.module_calls && kernel.kind != KernelKind::none)
    kernels_->back().issue = Issue::module;
  const bool again = mode_ == TapeMode::redo && !in_backward_;
  if (!again) result_.model_flops += model_flops_of(kernel);
}

void TapeState::launch(KernelKind kind, Issue issue, DType type, double bytes, double elements) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.issue = issue;
  kernel.type = type;
  kernel.bytes = bytes;
  kernel.elements = elements;
  launch(kernel);
}

void TapeState::launch_cast(Extent extent, DType from, DType to, Issue issue) {
  launch(cast_kind(from, to), issue, from,
         static_cast<double>(bytes_of(extent, from) + bytes_of(extent, to)),
         static_cast<double>(elements(extent, sizes_)));
}

void TapeState::launch_weight_cast(const Parameter& weight, DType from, DType to) {
  launch(cast_kind(from, to), Issue::nested, from,
         static_cast<double>(checked_mul(weight.numel, size_of(from) + size_of(to))),
         static_cast<double>(weight.numel));
}

/// Names the kernels since the last event, so that a framework's actions stand between them.
void TapeState::flush_kernels() {
  const std::size_t count = kernels_->size() - flushed_;
  if (count == 0) return;
  events_->push_back({TapeEvent::Kind::compute, Category::other,
                      static_cast<std::int32_t>(flushed_), static_cast<std::int64_t>(count)});
  flushed_ = kernels_->size();
}

double TapeState::count_of(ValueId id) const {
  return static_cast<double>(elements(graph_.value(id).extent, sizes_));
}

double TapeState::moved(ValueId value, DType type) const {
  return static_cast<double>(bytes_of(graph_.value(value).extent, type));
}

/// y = x·W: m rows, n outputs, k inputs; experts are a batch of products.
Kernel TapeState::product_of(const Op& op, DType type) const {
  const Parameter& w = parameter(op.weight);
  Kernel p;
  p.kind = KernelKind::product;
  p.type = type;
  const bool experts = op.kind == OpKind::grouped_linear && w.shape.size() == 3;
  const std::int64_t each =
      std::max<std::int64_t>(1, experts ? w.numel / w.shape.front() : w.numel);
  const std::int64_t rows = std::max<std::int64_t>(1, elements(op.work, sizes_) / each);
  p.batch = experts ? std::min(w.shape.front(), rows) : 1;
  p.m = std::max<std::int64_t>(1, rows / p.batch);
  p.n = op.kind == OpKind::fused_linear_loss
            ? each / graph_.value(op.in[0]).extent.per
            : std::max<std::int64_t>(1, elements(graph_.value(op.out).extent, sizes_) / rows);
  p.k = std::max<std::int64_t>(1, each / std::max<std::int64_t>(1, p.n));
  return p;
}

/// Two activations: elements of both inputs and of the result give the sizes and their batch.
Kernel TapeState::batched_product_of(const Op& op, DType type) const {
  const double work = static_cast<double>(elements(op.work, sizes_));
  const auto whole = [](double x) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(x + 0.5));
  };
  Kernel p;
  p.kind = KernelKind::product;
  p.type = type;
  p.m = whole(work / count_of(op.in[1]));
  p.n = whole(work / count_of(op.in[0]));
  p.k = whole(work / count_of(op.out));
  p.batch = whole(work /
                  (static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k)));
  return p;
}

/// A head of the fused kernel; its width is the mean of those of keys and values.
Kernel TapeState::attention_of(const Op& op, DType type) const {
  Kernel a;
  a.kind = KernelKind::attention;
  a.type = type;
  const std::int64_t heads = std::max<std::int64_t>(1, op.side.per);
  const std::int64_t rows = elements({1, op.side.scale}, sizes_);
  const std::int64_t pairs = elements({1, op.work.scale}, sizes_);
  a.n = std::max<std::int64_t>(1, pairs / std::max<std::int64_t>(1, rows));
  a.batch = heads * sizes_.batch;
  a.m = std::max<std::int64_t>(1, rows / sizes_.batch);
  a.k = std::max<std::int64_t>(1, op.work.per / heads / 2);
  a.masked = is_masked(op) || op.scores_bias != kNone;
  a.causal = op.causal && !a.masked && a.m > 1;
  a.drops = op.drops;
  return a;
}

void TapeState::launch_math_attention(const Op& op, Issue issue) {
  const bool backward = issue == Issue::autograd;
  const Extent queries = graph_.value(op.in[0]).extent;
  const Extent square{op.side.per, op.work.scale};
  const double rows = static_cast<double>(bytes_of(queries, DType::f32));
  const double scores = static_cast<double>(bytes_of(square, DType::f32));
  for (int i = 0; i < (backward ? 4 : 3); ++i)
    launch(KernelKind::strided, i == 0 ? issue : Issue::nested, DType::f32, 2 * rows, rows / 4);
  Kernel product = attention_of(op, DType::f32);
  product.kind = KernelKind::product;
  product.issue = Issue::nested;
  product.causal = false;
  product.calls = backward ? 4 : 2;
  launch(product);
  launch(backward ? KernelKind::softmax_backward : KernelKind::softmax, Issue::nested, DType::f32,
         (backward ? 3 : 2) * scores, scores / 4);
  launch(KernelKind::elementwise, Issue::nested, DType::f32, 2 * scores, scores / 4);
}

/// Of an fp32 copy: the copy, the largest, the difference, the exponential, the sum and the
/// quotient, each a kernel; backward one product and the cast. Else two kernels that read the
/// logits and write over them.
void TapeState::launch_vocabulary_loss(const Op& op, Issue issue) {
  const double count = count_of(op.in[0]);
  const double narrow = moved(op.in[0], state(op.in[0]).dtype);
  const bool backward = issue == Issue::autograd;
  const DType type = state(op.in[0]).dtype;
  if (op.side.per == 0) {
    launch(KernelKind::softmax, issue, type, (backward ? 2 : 3) * narrow, count);
    return;
  }
  constexpr double kWide = 4;  // bytes
  launch(cast_kind(type, DType::f32), issue, type, narrow + kWide * count, count);
  Kernel passes;
  passes.kind = KernelKind::elementwise;
  passes.issue = Issue::nested;
  passes.type = DType::f32;
  passes.elements = count;
  passes.bytes = (backward ? 2 : 1.6) * kWide * count;
  passes.calls = backward ? 1 : 5;
  launch(passes);
}

void TapeState::launch_forward(const Op& op, DType type) {
  if (options_.selective && mode_ == TapeMode::redo && is_product(op.kind)) return;
  const DType out = state(op.out).dtype;
  switch (op.kind) {
    case OpKind::linear:
    case OpKind::grouped_linear:
      launch_product(op, type);
      if (op.bias != kNone && casts(op))
        launch_weight_cast(parameter(op.bias), parameter_type(op.bias), type);
      return;
    case OpKind::fused_linear_loss: {
      Kernel product = product_of(op, regime_.compute);
      product.calls = keep_ ? 3 : 1;  // both gradients are made at once
      launch(product);
      const double logits = static_cast<double>(product.m) * static_cast<double>(product.n);
      launch(KernelKind::softmax, Issue::nested, regime_.compute,
             3 * logits * static_cast<double>(size_of(regime_.compute)), logits);
      return;
    }
    case OpKind::matmul:
      launch(batched_product_of(op, type));
      return;
    case OpKind::sdpa:
      if (runs_as_math(op, type)) {
        launch_math_attention(op, Issue::python);
      } else {
        launch(attention_of(op, type));
      }
      return;
    case OpKind::nll_loss: {  // reads one element a row
      const double rows = static_cast<double>(elements(op.side, sizes_));
      launch(KernelKind::elementwise, Issue::python, type, 8 * rows, rows);
      return;
    }
    case OpKind::vocabulary_loss:
      launch_vocabulary_loss(op, Issue::python);
      return;
    default:
      break;
  }
  double bytes = moved(op.out, out);
  double most = count_of(op.out);
  const double result = most;
  bool strided = false;
  const std::size_t inputs = op.kind == OpKind::to_like ? 1 : op.in.size();
  for (std::size_t k = 0; k < inputs && op.in[k] != kNone; ++k) {
    const DType read = read_type(op, k);
    bytes += moved(op.in[k], read);
    most = std::max(most, count_of(op.in[k]));
    strided = strided || state(op.in[k]).sliced || count_of(op.in[k]) != result ||
              cast_kind(read, out) == KernelKind::strided;
  }
  if (op.kind == OpKind::embedding) bytes *= 2;
  if (op.kind == OpKind::cache && sizes_.cached > 0) bytes += moved(op.out, out);
  if (op.kind == OpKind::dropout) bytes += result;
  KernelKind kind = forward_kind(op.kind);
  if (kind == KernelKind::elementwise && strided) kind = KernelKind::strided;
  launch(kind, Issue::python, type, bytes, most);
}

void TapeState::launch_product(const Op& op, DType type) {
  const Kernel product = product_of(op, type);
  const bool arrives = arriving_.last != kNone && arriving_.value == op.in[0];
  if (arrives) {
    launch_beside_gather(product, &graph_.ops()[static_cast<std::size_t>(arriving_.last)] == &op);
  } else if (chunks_into(product, options_.scatter_chunks) && is_scattered_next(op)) {
    launch_beside_scatter(product, op);
    scattered_ = true;
  } else {
    launch(product);
  }
}

void TapeState::launch_linear_backward(const Op& op, DType type) {
  const bool fused = op.kind == OpKind::fused_linear_loss;
  if (fused) return;  // made in the forward pass
  const Kernel forward = product_of(op, type);
  Kernel input = forward;
  input.issue = Issue::autograd;
  std::swap(input.n, input.k);
  Kernel weight = forward;
  weight.issue = Issue::autograd;
  weight.m = forward.n;
  weight.n = forward.k;
  weight.k = forward.m;
  const bool input_grad = op.in[0] != kNone && state(op.in[0]).needs_grad;
  const bool arrives = arriving_.value == op.out;
  if (arrives && !input_grad) wait_for_exchange();
  if (input_grad && arrives) launch_beside_gather(input, true);
  if (input_grad && !arrives) launch(input);
  if (arrives) arriving_ = {};
  if (input_grad) weight.issue = Issue::nested;
  const bool later = input_grad && waits_for_gradient(op);
  if (trains(op.weight) && later) weight_products_.push_back(weight);
  if (trains(op.weight) && !later) launch(weight);
  if (trains(op.bias))
    launch(KernelKind::column_sum, Issue::nested, type, moved(op.out, type), count_of(op.out));
}

void TapeState::launch_mul_backward(const Op& op) {
  const DType out = state(op.out).dtype;
  const double whole = moved(op.out, out), count = count_of(op.out);
  Issue issue = Issue::autograd;
  for (std::size_t k = 0; k < 2; ++k) {
    if (op.in[k] == kNone || !state(op.in[k]).needs_grad) continue;
    const ValueId other = op.in[1 - k];
    const bool plain =
        count_of(other) == count && state(other).dtype == out && !state(other).sliced;
    launch(plain ? KernelKind::elementwise : KernelKind::strided, issue, out,
           2 * whole + moved(other, state(other).dtype), count);
    issue = Issue::nested;
    if (count_of(op.in[k]) == count) continue;  // else the gradient is summed to the operand's size
    const Extent operand = graph_.value(op.in[k]).extent;
    const bool row = operand.scale == Scale::one || units(operand.scale, sizes_) == 1;
    launch(row ? KernelKind::column_sum : KernelKind::row_reduction, Issue::nested, out, whole,
           count);
  }
}

void TapeState::launch_backward(const Op& op, DType type) {
  const DType out = state(op.out).dtype;
  const double whole = moved(op.out, out), count = count_of(op.out);
  const auto node = [&](KernelKind kind, double bytes, double elements) {
    launch(kind, Issue::autograd, out, bytes, elements);
  };
  switch (op.kind) {
    case OpKind::linear:
    case OpKind::grouped_linear:
    case OpKind::fused_linear_loss:
      launch_linear_backward(op, type);
      return;
    case OpKind::matmul: {
      Kernel product = batched_product_of(op, type);
      product.issue = Issue::autograd;
      product.calls = 2;
      launch(product);
      return;
    }
    case OpKind::sdpa: {
      if (runs_as_math(op, type)) {
        launch_math_attention(op, Issue::autograd);
        return;
      }
      Kernel a = attention_of(op, type);
      if (op.again) launch(a);
      a.kind = KernelKind::attention_backward;
      a.issue = Issue::autograd;
      launch(a);
      return;
    }
    case OpKind::embedding: {
      const Parameter& table = parameter(op.weight);
      node(KernelKind::embedding_backward,
           static_cast<double>(table.numel * size_of(parameter_type(op.weight))) + 3 * whole,
           count);
      return;
    }
    case OpKind::layer_norm:
    case OpKind::rms_norm:
      node(KernelKind::layer_norm_backward, 5 * whole, count);
      return;
    case OpKind::gated:
      node(KernelKind::elementwise, 5 * whole, 2 * count);
      return;
    case OpKind::vocabulary_loss:
      launch_vocabulary_loss(op, Issue::autograd);
      return;
    case OpKind::softmax:
    case OpKind::softmax_f32:
    case OpKind::log_softmax:
      node(KernelKind::softmax_backward, 3 * whole, count);
      return;
    case OpKind::nll_loss:
      node(KernelKind::elementwise, moved(op.in[0], read_type(op, 0)), count_of(op.in[0]));
      return;
    case OpKind::mean:  // the expanded gradient over the width
      node(KernelKind::strided, moved(op.in[0], state(op.in[0]).dtype), count_of(op.in[0]));
      return;
    case OpKind::power:  // grad·(c·xᶜ⁻¹)
      node(KernelKind::elementwise, 2 * whole, count);
      launch(KernelKind::elementwise, Issue::nested, out, 2 * whole, count);
      launch(KernelKind::elementwise, Issue::nested, out, 3 * whole, count);
      return;
    case OpKind::mul:
      launch_mul_backward(op);
      return;
    case OpKind::add:
    case OpKind::copy:
    case OpKind::fold_heads:
      node(KernelKind::none, 0, 0);
      for (const ValueId in : op.in)  // a broadcast operand's gradient is summed to its size
        if (in != kNone && state(in).needs_grad && count_of(in) < count)
          launch(KernelKind::column_sum, Issue::nested, out, whole, count);
      return;
    case OpKind::cat:
    case OpKind::communicate:
    case OpKind::parameter:
      node(KernelKind::none, 0, 0);
      return;
    case OpKind::view:
      if (count_of(op.in[0]) <= count) {
        node(KernelKind::none, 0, 0);
        return;
      }
      node(KernelKind::elementwise, moved(op.in[0], out), count_of(op.in[0]));  // zeros
      launch(KernelKind::strided, Issue::nested, out, 2 * whole, count);
      return;
    case OpKind::gather_rows:
      node(KernelKind::embedding, moved(op.in[0], out) + 3 * whole, count);
      return;
    case OpKind::scatter_rows:
      node(KernelKind::embedding, 2 * whole, count);
      return;
    case OpKind::scalar:
      node(KernelKind::elementwise, 2 * whole, count);
      return;
    case OpKind::to_f32:
    case OpKind::to_adapter:
    case OpKind::to_like:
      launch_cast(graph_.value(op.out).extent, out, state(op.in[0]).dtype, Issue::autograd);
      return;
    case OpKind::dropout:
      node(KernelKind::elementwise, 2 * whole + count, count);
      return;
    default:
      node(KernelKind::elementwise, 3 * whole, count);
      return;
  }
}

}  // namespace shardplan
