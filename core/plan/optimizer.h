// The optimizer and how its step is implemented.
#pragma once

#include <cstdint>
#include <string>

namespace shardplan {

enum class OptimizerKind : std::uint8_t {
  adamw,
  adam,
  sgd,
  adagrad,
  adafactor,
  lion,
  lamb,
  adamw_8bit,
  muon
};

/// PyTorch's three implementations: one kernel over all tensors, lists of tensors, tensor by
/// tensor.
enum class OptimizerImplementation : std::uint8_t { fused, foreach, for_loop };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::adamw;
  OptimizerImplementation implementation = OptimizerImplementation::fused;
  double momentum = 0;   ///< SGD
  bool amsgrad = false;  ///< Adam, AdamW
};

}  // namespace shardplan
