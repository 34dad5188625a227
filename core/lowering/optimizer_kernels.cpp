#include "lowering/optimizer_kernels.h"

namespace shardplan {
namespace {

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

std::int64_t matrices_of(const std::vector<OwnedTensor>& owned) {
  std::int64_t count = 0;
  for (const OwnedTensor& t : owned)
    if (Updated{.parameter = t.parameter}.is_matrix()) count += t.count;
  return count;
}

/// Lists of DTensors take the host longer.
Issue issue_of(Given given) {
  return given == Given::shards ? Issue::sharded : Issue::listed;
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
  Kernel norms = sweep(bytes, gradients, tensors, issue);
  norms.elements = kClippingWork * elements_of(owned) / tensors;
  Kernel scaled = norms;
  scaled.bytes *= 2;
  return {norms, scaled};
}

std::vector<Kernel> product_kernels(const Updated& tensor, std::int64_t count,
                                    const Optimizer& optimizer, const StateTypes& types) {
  std::vector<Kernel> kernels;
  if (optimizer.kind->products == nullptr) return kernels;
  std::vector<UpdateProduct> products;
  optimizer.kind->products(tensor, optimizer, products);
  for (const UpdateProduct& product : products) {
    Kernel k;
    k.kind = KernelKind::product;
    k.issue = Issue::loop;
    k.type = product.type == StateType::half ? DType::bf16 : types.plan;
    k.calls = static_cast<std::int32_t>(product.calls * count);
    k.m = product.m;
    k.n = product.n;
    k.k = product.k;
    k.elements = static_cast<double>(product.m) * static_cast<double>(product.n);
    const double read = static_cast<double>(product.k) * static_cast<double>(product.m + product.n);
    k.bytes = (read + k.elements) * static_cast<double>(size_of(k.type));
    kernels.push_back(k);
  }
  return kernels;
}

namespace {

/// A kernel for each tensor, which the host waits for: gradient read, weight read and written.
std::vector<Kernel> waited_kernels(const std::vector<OwnedTensor>& owned,
                                   const Optimizer& optimizer, const Precision& precision,
                                   Given given) {
  std::vector<Kernel> kernels;
  for (const OwnedTensor& t : owned) {
    const TensorUpdate update = variant_of(optimizer).update(
        {.given = given, .parameter = t.parameter, .numel = t.numel}, optimizer);
    const bool adapter = t.parameter != nullptr && t.parameter->adapter;
    Kernel k;
    k.kind = update.quantized ? KernelKind::blockwise_update : KernelKind::elementwise;
    k.issue = Issue::waited;
    k.type = adapter ? DType::f32 : precision.gradients;
    k.calls = static_cast<std::int32_t>(t.count);
    k.elements = static_cast<double>(t.numel);
    k.bytes = k.elements * (3 * static_cast<double>(size_of(k.type)) + update.bytes_each);
    kernels.push_back(k);
  }
  return kernels;
}

}  // namespace

std::vector<Kernel> optimizer_kernels(const std::vector<OwnedTensor>& owned,
                                      const Optimizer& optimizer, const Precision& precision,
                                      Given given) {
  const auto tensors = static_cast<std::int32_t>(count_of(owned));
  if (tensors == 0) return {};
  const Variant& variant = variant_of(optimizer);
  if (variant.update != nullptr) return waited_kernels(owned, optimizer, precision, given);
  const UpdatePasses passes = variant.passes(optimizer);
  const auto width = static_cast<double>(size_of(precision.optimizer_states));
  const double widened = width < 4 ? 4 * passes.widened : 0;
  const double bytes = (passes.count * width + widened) * elements_of(owned);
  Kernel step = sweep(bytes, precision.optimizer_states, tensors, issue_of(given));
  // A fused kernel computes as long as it moves bytes where these are few.
  if (variant.implementation == OptimizerImplementation::fused)
    step.elements = elements_of(owned) / tensors;
  if (variant.one_by_one) {  // every operation on every tensor is a call of its own
    const std::int64_t operations =
        passes.operations - passes.of_matrices + (width < 4 ? passes.widening : 0);
    step.kind = KernelKind::elementwise;
    step.issue = Issue::loop;
    step.calls =
        static_cast<std::int32_t>(tensors * operations + matrices_of(owned) * passes.of_matrices);
    step.bytes = bytes / step.calls;
  }
  std::vector<Kernel> kernels{step};
  const StateTypes types{precision.optimizer_states, precision.gradients};
  for (const OwnedTensor& t : owned) {
    const Updated tensor{.given = given, .parameter = t.parameter, .numel = t.numel};
    const std::vector<Kernel> products = product_kernels(tensor, t.count, optimizer, types);
    kernels.insert(kernels.end(), products.begin(), products.end());
  }
  return kernels;
}

}  // namespace shardplan
