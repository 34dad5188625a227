// FSDP1's forward and backward pass of one micro-batch.
#pragma once

#include "frameworks/fsdp1/flat_shards.h"

namespace shardplan {

/// One micro-batch among those of a step.
struct Fsdp1Turn {
  bool syncs = true;            ///< gradients are reduced
  bool first_reduced = true;    ///< and nothing has been before
  bool adds_whole = false;      ///< whole gradients of earlier ones are there (no_sync)
  bool finds_gathered = false;  ///< SHARD_GRAD_OP under no_sync leaves parameters gathered
};

void emit_forward_pass(ProgramBuilder& b, const Fsdp1& f, const Fsdp1Turn& turn);

/// Up to and with the final callback, after which gradients are as the optimizer finds them.
void emit_backward_pass(ProgramBuilder& b, const Fsdp1& f, const Fsdp1Turn& turn);

}  // namespace shardplan
