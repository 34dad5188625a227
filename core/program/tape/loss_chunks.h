// The chunks of tokens in which Liger's fused linear cross-entropy works
// (ops/fused_linear_cross_entropy.py of liger_kernel 0.8.5).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/units.h"
#include "program/tape/graph_view.h"

namespace shardplan::tape {

/// Rows of the input's `width`, chunk by chunk.
struct LossChunks {
  std::int64_t tokens = 0, width = 0, vocabulary = 0;
  std::int64_t chunk = 0;  ///< tokens of one

  LossChunks(const GraphView& view, const Op& op) {
    const Extent in = view.extent_of(op.in[0]);
    const Sizes& sizes = view.sizes();
    tokens = units(in, sizes);
    if (op.fused != nullptr && op.fused->skips_unscored && in.scale == Scale::tokens)
      tokens -= sizes.batch * std::min(sizes.unscored, sizes.sequence - 1);
    width = in.per;
    vocabulary = view.parameter(op.weight).numel / width;
    // As many logits as the input has elements, rounded up to a power of two of tokens.
    const std::int64_t parts = ceil_div(vocabulary, width);
    const auto each = static_cast<std::uint64_t>(ceil_div(tokens, parts));
    chunk = std::min(static_cast<std::int64_t>(std::bit_ceil(each)), tokens);
  }
  std::int64_t count() const { return ceil_div(tokens, chunk); }
};

}  // namespace shardplan::tape
