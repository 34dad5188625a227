// What a block's forward pass leaves behind.
#pragma once

#include <cstdint>

#include "lowering/lower.h"

namespace shardplan {

/// Bytes that the first block keeps for its backward pass, its output among them; `model`: one
/// rank's share.
inline std::int64_t kept_by_first_block(const Model& model, const Plan& plan) {
  const ModelRun run = run_segments(model, plan);
  std::int64_t live = 0;
  for (const TapeEvent& e : run.segments[1].forward.forward) {
    if (e.kind == TapeEvent::Kind::alloc) live += e.bytes;
    if (e.kind == TapeEvent::Kind::free) live -= e.bytes;
  }
  return live;
}

}  // namespace shardplan
