// How long the GPUs of an engine take for one of their exchanges: docs/explanation/serving.md.
#pragma once

#include "hardware/cluster.h"
#include "program/program.h"
#include "rollout/engine.h"
#include "timing/rates.h"

namespace shardplan {

/// Of all `event.count` calls together. Small all-reduces are a kernel of the engine's own; the
/// others are the library's, whose steps from GPU to GPU each take their time.
double engine_exchange_seconds(const Event& event, const GroupShape& group, const Cluster& cluster,
                               const LinkRates& links, const EngineDescription& engine);

}  // namespace shardplan
