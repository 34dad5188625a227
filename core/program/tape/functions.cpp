#include "program/tape/functions.h"

#include <algorithm>
#include <array>
#include <vector>

namespace shardplan::tape {
namespace {

/// The type of what is narrow. Nothing where a copy in it is none.
std::int64_t bytes_of(const GraphView& view, const Op& op, const FunctionTensor& tensor) {
  const DType narrow = view.narrow_type(op);
  if (tensor.type == FunctionType::copied && narrow == DType::f32) return 0;
  if (tensor.type == FunctionType::cast_weight && narrow == view.regime().params) return 0;
  return view.bytes_of(tensor.extent, tensor.type == FunctionType::wide ? DType::f32 : narrow);
}

std::vector<StorageId> allocate(Parts& p, const Op& op, const std::vector<FunctionTensor>& list) {
  std::vector<StorageId> storages;
  for (const FunctionTensor& tensor : list)
    if (const std::int64_t bytes = bytes_of(p.view, op, tensor); bytes > 0)
      storages.push_back(p.storages.allocate(bytes, p.view.category_of(op.out)));
  return storages;
}

void free_all(Parts& p, const std::vector<StorageId>& storages) {
  for (const StorageId id : storages) p.storages.unref(id);
}

/// What a pass has beside inputs, result and gradients: it comes and goes.
void work(Parts& p, const Op& op, const FunctionPass& pass) {
  std::int64_t workspace = 0;
  for (const FunctionTensor& tensor : pass.workspace)
    workspace = checked_add(workspace, bytes_of(p.view, op, tensor));
  std::vector<StorageId> working = allocate(p, op, pass.working);
  if (workspace > 0) working.push_back(p.storages.allocate(workspace, p.view.category_of(op.out)));
  free_all(p, working);
}

KernelKind kind_of(FunctionKernelKind kind) {
  switch (kind) {
    case FunctionKernelKind::sweep:
      return KernelKind::elementwise;
    case FunctionKernelKind::strided:
      return KernelKind::strided;
    case FunctionKernelKind::reduction:
      return KernelKind::row_reduction;
    case FunctionKernelKind::product:
      return KernelKind::product;
    case FunctionKernelKind::call:
      break;
  }
  return KernelKind::none;
}

Kernel kernel_of(const GraphView& view, const Op& op, const FunctionKernels& k) {
  const DType narrow = view.narrow_type(op);
  const auto count = [&](Extent extent) { return elements(extent, view.sizes()); };
  Kernel kernel = memory_kernel(kind_of(k.kind), Issue::nested, narrow, 0, 0);
  kernel.elements = static_cast<double>(checked_add(count(k.narrow), count(k.wide)));
  kernel.bytes = static_cast<double>(
      checked_add(view.bytes_of(k.narrow, narrow), view.bytes_of(k.wide, DType::f32)));
  kernel.calls = static_cast<std::int32_t>(std::clamp<std::int64_t>(count(k.calls), 1, 1 << 30));
  kernel.m = count(k.m);
  kernel.n = k.n;
  kernel.k = k.k;
  kernel.batch = std::max<std::int64_t>(1, count(k.batch));
  return kernel;
}

}  // namespace

void function_forward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  const Function& f = p.graph().function(op);
  const std::vector<StorageId> kept = allocate(p, op, f.kept);
  work(p, op, f.forward);
  if (!p.keeps() || !p.view.state(op.out).needs_grad) return free_all(p, kept);
  for (std::size_t k = 0; k < op.in.size(); ++k)
    if (op.in[k] != kNone && f.saves[k]) p.saved.save(i, p.view.state(op.in[k]).storage);
  for (const StorageId id : kept) p.saved.move_in(i, id);
}

void function_backward(Parts& p, std::size_t i) {
  const Op& op = p.graph().ops()[i];
  const Function& f = p.graph().function(op);
  std::vector<ValueId> inputs;
  for (const ValueId in : op.in) inputs.push_back(in);
  for (const Hold& join : p.graph().joins())
    if (join.until == op.out) inputs.push_back(join.value);
  std::erase_if(inputs, [&](ValueId in) { return in == kNone || !p.view.state(in).needs_grad; });
  std::vector<StorageId> gradients;
  for (const ValueId in : inputs)
    gradients.push_back(p.gradients.allocate_like(in, p.view.state(in).dtype));
  work(p, op, f.backward);
  for (std::size_t k = 0; k < inputs.size(); ++k) p.gradients.give(inputs[k], gradients[k]);
}

KernelList function_kernels(const GraphView& view, const Op& op, const FunctionPass& pass,
                            Issue issue) {
  KernelList list;
  for (const FunctionKernels& kernels : pass.kernels) {
    Kernel kernel = kernel_of(view, op, kernels);
    if (list.size() == 0 || kernel.calls > 1) kernel.issue = issue;
    list.add(kernel);
  }
  return list;
}

}  // namespace shardplan::tape
