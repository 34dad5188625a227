// Optimizers that update whole matrices and leave the rest to Adam (Muon): under Megatron-LM's
// distributed optimizer no matrix is cut, each is one rank's (optimizer/layer_wise_optimizer.py).
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "program/kernel.h"

namespace shardplan {

/// What of a stage's parameters such an optimizer takes.
struct Matrices {
  std::int64_t elements = 0;           ///< of all that it takes
  std::int64_t all = 0;                ///< of all that trains
  const Parameter* largest = nullptr;  ///< an expert counts alone
  std::int64_t largest_elements = 0;

  /// Elements of `part` of all that trains that are in matrices.
  std::int64_t of(std::int64_t part) const;
  /// Elements that the fullest of `owners` ranks may have above its even share: matrices are dealt
  /// out whole, up to 30 % above it (_compute_per_buffer_param_layout).
  std::int64_t above_share(std::int64_t owners) const;
};

/// Nothing where the plan's optimizer treats all parameters alike.
Matrices matrices_of(const Model& own, const Optimizer& optimizer);

/// Bytes beside the states while the largest matrix is updated.
std::int64_t matrix_workspace(const Matrices& matrices, const Plan& plan);

/// Newton-Schulz over the matrices of one of `owners` ranks.
std::vector<Kernel> matrix_products(const Model& own, const Plan& plan, std::int64_t owners);

}  // namespace shardplan
