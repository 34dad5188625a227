// The kernels that the native engine starts, for the time model.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "frameworks/native/sizes.h"
#include "program/kernel.h"
#include "program/program.h"

namespace shardplan {

/// Kernels, and then what the ranks that share each layer exchange.
struct NativeStretch {
  /// Bytes that ranks that share sequences pass on beside the kernels.
  std::int64_t passed_on = 0;
  std::vector<Kernel> kernels;
  bool read = false;  ///< the host waits for what they made, and reads it
  std::optional<Collective> exchange;
  std::int64_t bytes = 0;  ///< of what is exchanged, whole
};
/// Stretch by stretch; one rank's kernels are one stretch, as it exchanges nothing.
using NativeWork = std::vector<NativeStretch>;

NativeWork native_embedding(const Native& n);
NativeWork native_embedding_backward(const Native& n);
NativeWork native_block_forward(const Native& n);
/// How a backward pass treats a block.
struct NativeBlockPass {
  bool lowest = false;  ///< the first one, where nothing below the first adapter is trained
  bool again = false;   ///< done again whole
  bool operator==(const NativeBlockPass&) const = default;
};
/// With what checkpointing makes again.
NativeWork native_block_backward(const Native& n, const NativeBlockPass& pass);
/// The last norm, the logits chunk by chunk and their way back.
NativeWork native_head(const Native& n);
/// The branch is added to the residual stream, for the next stage.
std::vector<Kernel> native_hand_on(const Native& n);
/// Clipping and AdamW over what the rank owns.
std::vector<Kernel> native_update(const Native& n);

/// Of a perceptron's layer.
std::vector<Kernel> native_layer_forward(const Native& n, std::size_t layer);
std::vector<Kernel> native_layer_backward(const Native& n, std::size_t layer);

}  // namespace shardplan
