// What the times of engines beside a trainer have in common: of one that generates, of one that
// judges.
#pragma once

#include "estimate/time.h"
#include "lowering/inference/pass.h"
#include "rollout/engine.h"
#include "serving/engine_pass.h"

namespace shardplan {

/// So many passes, by what they are spent on.
void add(TimeEstimate& sum, const EnginePassTime& pass, double times);
/// The GPU waits.
void add_idle(TimeEstimate& sum, double seconds);

/// A pass over one sequence at the GPU's peak rate; `before`: the one before it, of a token that is
/// generated.
double peak_seconds(const Model& model, Plan plan, const Pass& pass, const Pass* before,
                    const TimeRates& rates);

/// The driver maps what the engine sleeps without, and takes it back.
double mapping_seconds(const RolloutEngine& engine, const EngineMemory& memory);

/// Its layers are divided among GPUs in a way that has a time.
bool is_timed(const Model& model, const Plan& plan, const RolloutEngine& engine);

}  // namespace shardplan
