#include "lowering/optimizer_kernels.h"

namespace shardplan {
namespace {

/// How often an optimizer's step reads or writes an element (torch/optim/*.py): of parameters,
/// gradients and states where it has a fused kernel; else of all its intermediate results, each
/// operation of which reads and writes whole tensors.
struct Passes {
  double count = 0;
  std::int64_t operations = 1;  ///< calls for each tensor, where there is one for each
};

Passes passes_of(const Optimizer& optimizer) {
  const bool fused = optimizer.implementation == OptimizerImplementation::fused;
  switch (optimizer.kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      if (fused) return {optimizer.amsgrad ? 9.0 : 7.0, 1};
      return {optimizer.amsgrad ? 24.0 : 21.0, optimizer.amsgrad ? 12 : 11};
    case OptimizerKind::sgd:
      return {optimizer.momentum != 0 ? 8.0 : 3.0, optimizer.momentum != 0 ? 3 : 1};
    case OptimizerKind::adagrad:
      if (fused) return {5, 1};
      return {13, 6};
    case OptimizerKind::adafactor:
      return {22, 24};
    case OptimizerKind::lion:
      return {12, 6};
    case OptimizerKind::lamb:
      return {24, 14};
    case OptimizerKind::adamw_8bit:
      return {3.5, 1};
    case OptimizerKind::muon:
      return {9, 40};
  }
  return {};
}

std::int64_t count_of(const std::vector<OwnedTensor>& owned) {
  std::int64_t count = 0;
  for (const OwnedTensor& t : owned) count += t.count;
  return count;
}

double elements_of(const std::vector<OwnedTensor>& owned) {
  double elements = 0;
  for (const OwnedTensor& t : owned)
    elements += static_cast<double>(t.numel) * static_cast<double>(t.count);
  return elements;
}

}  // namespace

Kernel sweep(double bytes, DType type, std::int32_t tensors, Issue issue) {
  Kernel k;
  k.kind = KernelKind::multi_tensor;
  k.issue = issue;
  k.type = type;
  k.calls = tensors;
  k.bytes = bytes / tensors;
  return k;
}

std::vector<Kernel> clipping_kernels(const std::vector<OwnedTensor>& owned, DType gradients,
                                     Issue issue) {
  const auto tensors = static_cast<std::int32_t>(count_of(owned));
  if (tensors == 0) return {};
  const double bytes = elements_of(owned) * static_cast<double>(size_of(gradients));
  return {sweep(bytes, gradients, tensors, issue), sweep(2 * bytes, gradients, tensors, issue)};
}

std::vector<Kernel> optimizer_kernels(const std::vector<OwnedTensor>& owned,
                                      const Optimizer& optimizer, const Precision& precision,
                                      Issue issue) {
  const auto tensors = static_cast<std::int32_t>(count_of(owned));
  if (tensors == 0) return {};
  const Passes passes = passes_of(optimizer);
  const double bytes =
      passes.count * elements_of(owned) * static_cast<double>(size_of(precision.optimizer_states));
  Kernel step = sweep(bytes, precision.optimizer_states, tensors, issue);
  // A fused kernel computes as long as it moves bytes where these are few.
  if (optimizer.implementation == OptimizerImplementation::fused)
    step.elements = elements_of(owned) / tensors;
  const bool one_by_one = optimizer.implementation == OptimizerImplementation::for_loop ||
                          optimizer.kind == OptimizerKind::adafactor ||
                          optimizer.kind == OptimizerKind::muon;
  if (one_by_one) {  // every operation on every tensor is a call of its own
    const auto operations = static_cast<std::int32_t>(passes.operations);
    step.kind = KernelKind::elementwise;
    step.issue = Issue::loop;
    step.calls = tensors * operations;
    step.bytes = bytes / step.calls;
  }
  return {step};
}

}  // namespace shardplan
