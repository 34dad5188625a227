#include <algorithm>

#include "program/tape/functions.h"
#include "program/tape/fused_kernels.h"
#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

KernelKind forward_kind(OpKind kind) {
  switch (kind) {
    case OpKind::mean:
    case OpKind::sum:
    case OpKind::deviation:
    case OpKind::log_sum_exp:
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
    case OpKind::gather_columns:
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

/// Elements that take as long as one whose factor is read a column at a time: 6.3 to 7.5 ps over
/// six shapes on an H200 (rates/h200/h200-row-sums.json), where a strided kernel's take 2.7.
constexpr double kReadAcross = 2.7;

/// One kernel that reads all inputs and writes the result.
Kernel mapped_kernel(const GraphView& view, const Op& op, DType type) {
  const DType out = view.state(op.out).dtype;
  const double result = view.count_of(op.out);
  double bytes = view.moved(op.out, out);
  double most = result;
  bool strided = false;
  for (std::size_t k = 0; GraphView::reads(op, k); ++k) {
    const DType read = view.read_type(op, k);
    const double count = view.count_of(op.in[k]);
    bytes += view.moved(op.in[k], read);
    most = std::max(most, count);
    strided = strided || view.state(op.in[k]).sliced || count != result ||
              cast_kind(read, out) == KernelKind::strided;
  }
  if (op.kind == OpKind::embedding) bytes *= 2;
  if (op.kind == OpKind::cache && view.sizes().cached > 0) bytes += view.moved(op.out, out);
  if (op.kind == OpKind::dropout) bytes += result;
  KernelKind kind = forward_kind(op.kind);
  if (kind == KernelKind::elementwise && strided) kind = KernelKind::strided;
  const Issue issue = op.fused != nullptr ? Issue::fused : Issue::python;
  if (op.kind == OpKind::mul && is_turned(view, op)) most *= kReadAcross;
  Kernel kernel = memory_kernel(kind, issue, type, bytes, most);
  if (op.kind == OpKind::mean) kernel.m = short_rows(most, most / result);
  if (op.kind == OpKind::sum && op.contraction)
    kernel.m = short_rows(most, static_cast<double>(op.contraction->row));
  return kernel;
}

}  // namespace

KernelList forward_kernels(const GraphView& view, const Op& op, DType type, bool keeps) {
  KernelList list;
  switch (op.kind) {
    case OpKind::fused_linear_loss:
      return fused_loss_kernels(view, op, keeps);
    case OpKind::vocabulary_loss:
      if (op.fused != nullptr) {  // reads the logits twice and writes their gradient over them
        list.add(memory_kernel(KernelKind::softmax, Issue::python, type,
                               3 * view.moved(op.in[0], type), view.count_of(op.in[0])));
        return list;
      }
      return vocabulary_loss_kernels(view, op, Issue::python);
    case OpKind::matmul:
      list.add(batched_product_kernel(view, op, type));
      return list;
    case OpKind::sdpa:
      if (view.runs_as_math(op, type)) return math_attention_kernels(view, op, Issue::python);
      list.add(attention_kernel(view, op, type));
      return list;
    case OpKind::function:
      return function_kernels(view, op, view.graph().function(op).forward, Issue::python);
    case OpKind::nll_loss: {  // reads one element a row
      const double rows = static_cast<double>(elements(op.side, view.sizes()));
      list.add(memory_kernel(KernelKind::elementwise, Issue::python, type, 8 * rows, rows));
      return list;
    }
    default:
      list.add(mapped_kernel(view, op, type));
      return list;
  }
}

}  // namespace shardplan::tape
