// What of AdamW is the same for all elements of a step.
#pragma once

#include <optional>

#include "device/operands.h"
#include "kernels/host/vectors/vectors.h"

namespace shardplan::validator::host {

/// In fp64; the update rounds each once to the type that it computes in.
struct StepFactors {
  double gradient = 1;      ///< inverse loss scale and clipping
  double decay = 1;         ///< 1 − learning rate · weight decay
  double step_size = 0;     ///< learning rate / (1 − β₁^step)
  double inverse_root = 1;  ///< 1 / √(1 − β₂^step)
};

/// Nothing where the gradients' norm is not finite: the step is skipped.
std::optional<StepFactors> step_factors(const AdamW& o);

/// The same as the vector loops take them.
std::optional<AdamWFactors> adamw_factors(const AdamW& o);
/// Elements [first, first + count) of the operands.
AdamWRange adamw_range(const AdamW& o, const AdamWFactors& factors, std::int64_t first,
                       std::int64_t count);

}  // namespace shardplan::validator::host
