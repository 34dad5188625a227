// Attention that no fused kernel takes.
#pragma once

#include <optional>

#include "model/model.h"
#include "program/tape.h"

namespace shardplan {

/// `segment` with the operations of PyTorch's fallback in place of fused attention, where the
/// element types rule the kernels out: in fp32 there is no flash attention, and the memory-
/// efficient kernel takes no grouped keys (aten/.../cuda/sdp_utils.cpp, PyTorch 2.11). Nothing if
/// all attention stays as it is.
std::optional<Segment> without_fused_attention(const Segment& segment, const Regime& regime);

}  // namespace shardplan
