// Time of generation: the pass over the prompt, and the passes after it, which grow evenly with
// what they attend to.
#pragma once

#include "estimate/time.h"
#include "model/model.h"

namespace shardplan {

/// What the host takes where autograd is off.
TimeRates without_autograd(TimeRates rates);

/// The parts of the result are those of the whole round; `generation` tells prompt and tokens
/// apart.
TimeEstimate estimate_generation_time(const Model& model, const Plan& plan, const TimeRates& rates);

}  // namespace shardplan
