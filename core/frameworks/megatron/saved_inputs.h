// How recomputed layers of Megatron-LM keep their inputs.
#pragma once

#include "plan/plan.h"
#include "program/tape.h"

namespace shardplan {

/// Saved inputs in parts. Where sequence parallelism divides them already, or nothing is there to
/// divide or to divide over, the option says nothing.
bool distributes_saved_activations(const Plan& plan);

/// Whether layers are recomputed whole: all of them, or the first ones of each stage
/// (--recompute-granularity full).
bool recomputes_whole_layers(const Plan& plan);

SavedInput megatron_saved_input(const Plan& plan);

}  // namespace shardplan
