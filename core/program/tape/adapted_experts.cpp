#include "program/tape/adapted_experts.h"

#include <utility>

#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

/// A wrapper registers its parametrization in each pass, for which PyTorch makes a class, and takes
/// it away again. On a CPU it takes 0.34 of what a plain block of Qwen3 with experts takes forward
/// (medians of seven turns, host_costs/time_param_wrapper.py), whose 2.0 ms beside a GPU are so
/// many turns of a loop, without the products that are counted beside them.
constexpr std::int32_t kCallsOfWrapper = 66;

/// baddbmm copies what it adds to into its result, a copy of all bytes in their order, and the
/// product reads it there.
KernelList sum_kernels(const GraphView& view, const Op& op, DType type) {
  KernelList list;
  const double bytes = 2 * view.moved(op.out, type);
  list.add(
      memory_kernel(KernelKind::elementwise, Issue::python, type, bytes, view.count_of(op.out)));
  Kernel product = batched_product_kernel(view, op, type);
  product.issue = Issue::nested;
  product.adds = true;
  list.add(product);
  return list;
}

/// The host reads how many rows each expert has, and starts one product after the other.
void launch_waiting(Parts& p, const Kernel& product, Issue issue) {
  p.writer.launch(call_kernel(issue, product.type));
  p.writer.host_waits();
  p.writer.launch(one_by_one(product));
}

}  // namespace

bool adapts_experts(const Op& op) {
  return op.kind == OpKind::matmul && (op.adds_factors || op.experts > 0);
}

void launch_adapted_experts(Parts& p, const Op& op, DType type) {
  if (op.adds_factors) {
    p.writer.python_calls(kCallsOfWrapper);
    // Once to see that the parametrization leaves shape and type (torch/nn/utils/parametrize.py,
    // ParametrizationList: `Z = self()`), and once to use it.
    for (int i = 0; i < 2; ++i) p.writer.launch(sum_kernels(p.view, op, type));
    return;
  }
  p.writer.launch(routing_kernels(p.view, op, Issue::python));
  const Kernel product = batched_product_kernel(p.view, op, type);
  if (multiplies_one_by_one(p.view, op, type)) return launch_waiting(p, product, Issue::python);
  p.writer.launch(product);
}

void launch_adapted_experts_backward(Parts& p, const Op& op) {
  const DType type = p.view.read_type(op, 0);
  if (op.adds_factors || !multiplies_one_by_one(p.view, op, type)) {
    p.writer.launch(backward_kernels(p.view, op));
  } else {
    Kernel input = batched_product_kernel(p.view, op, type), weight = input;
    std::swap(input.n, input.k);
    weight.m = input.k;
    weight.n = input.n;
    weight.k = input.m;
    weight.sums_rows = true;
    if (p.view.state(op.in[0]).needs_grad) launch_waiting(p, input, Issue::linear_node);
    launch_waiting(p, weight, Issue::linear_node);
  }
  if (op.experts > 0) p.writer.launch(routing_kernels(p.view, op, Issue::autograd));
}

}  // namespace shardplan::tape
