// The optimizer and how its step is implemented.
#pragma once

#include <array>
#include <cstdint>

namespace shardplan {

struct OptimizerDescription;

/// The one that a job has that names none: AdamW (optimizers/registry.h).
const OptimizerDescription& default_optimizer();

/// PyTorch's three implementations: one kernel over all tensors, lists of tensors, tensor by
/// tensor.
enum class OptimizerImplementation : std::uint8_t { fused, foreach, for_loop };

/// An optimizer takes at most so many options of its own (OptimizerDescription::options).
inline constexpr std::size_t kOptimizerOptions = 4;

struct Optimizer {
  const OptimizerDescription* kind = &default_optimizer();  ///< never null
  OptimizerImplementation implementation = OptimizerImplementation::fused;
  double momentum = 0;   ///< SGD
  bool amsgrad = false;  ///< Adam, AdamW
  /// What the job gives of the description's options, in its order; a flag is 0 or 1.
  std::array<double, kOptimizerOptions> options{};
};

}  // namespace shardplan
