#include "frameworks/megatron/matrices.h"

#include <algorithm>

#include "base/checked.h"
#include "lowering/optimizer_kernels.h"
#include "optimizers/states.h"

namespace shardplan {
namespace {

bool takes(const Optimizer& optimizer, const Parameter& p) {
  return optimizer.kind->takes != nullptr && optimizer.kind->takes(p, Given::flat);
}

std::int64_t one_matrix(const Parameter& p) {
  return p.kind == ParameterKind::expert ? p.numel / p.shape.front() : p.numel;
}

StateTypes types_of(const Plan& plan) {
  return {plan.precision.optimizer_states, plan.precision.optimizer_states};
}

}  // namespace

std::int64_t Matrices::of(std::int64_t part) const {
  if (elements == 0) return 0;
  const double share = static_cast<double>(elements) / static_cast<double>(all);
  return std::min(part, static_cast<std::int64_t>(static_cast<double>(part) * share));
}

std::int64_t Matrices::above_share(std::int64_t owners) const {
  if (owners == 1) return 0;
  return std::min(largest_elements, elements / owners * 3 / 10);
}

Matrices matrices_of(const Model& own, const Optimizer& optimizer) {
  Matrices m;
  if (optimizer.kind->takes == nullptr) return m;
  own.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable) return;
    const std::int64_t elements = checked_mul(p.numel, repeat);
    m.all += elements;
    if (!takes(optimizer, p)) return;
    m.elements += elements;
    if (one_matrix(p) <= m.largest_elements) return;
    m.largest_elements = one_matrix(p);
    m.largest = &p;
  });
  return m;
}

std::int64_t matrix_workspace(const Matrices& matrices, const Plan& plan) {
  if (matrices.largest == nullptr) return 0;
  const Updated tensor{.given = Given::flat,
                       .parameter = matrices.largest,
                       .numel = matrices.largest_elements,
                       .whole = matrices.largest_elements};
  return flat_temporary_bytes(tensor, plan.optimizer, types_of(plan));
}

std::vector<Kernel> matrix_products(const Model& own, const Plan& plan, std::int64_t owners) {
  std::vector<Kernel> kernels;
  own.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable || !takes(plan.optimizer, p)) return;
    const Updated tensor{.given = Given::flat, .parameter = &p, .numel = p.numel, .whole = p.numel};
    const std::vector<Kernel> own_products =
        product_kernels(tensor, ceil_div(repeat, owners), plan.optimizer, types_of(plan));
    kernels.insert(kernels.end(), own_products.begin(), own_products.end());
  });
  return kernels;
}

}  // namespace shardplan
