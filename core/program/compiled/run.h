// Runs a segment the way torch.compile with Inductor does: what its kernels allocate, keep and
// free.
#pragma once

#include "program/tape.h"

namespace shardplan {

/// As run_tape does it for an eager segment. Not for TapeMode::infer, nor for exchanges among
/// ranks inside a segment.
TapeRun run_compiled(const Model& model, const Segment& segment, const Regime& regime,
                     const Sizes& sizes, DType input, TapeMode mode, const TapeOptions& options);

}  // namespace shardplan
