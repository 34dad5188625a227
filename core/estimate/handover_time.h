// How long a trainer's weights take to engines on GPUs of their own: docs/explanation/rlhf.md.
#pragma once

#include "estimate/time.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

/// The machines of an engine with GPUs of its own, built as the trainer's; else the trainer's.
Cluster engine_cluster(const RolloutEngine& engine, const Cluster& trainer);

/// The trainer's ranks that hand weights over to engines on GPUs of their own, and all of theirs.
GroupShape handover_group(const Rlhf& rlhf);

/// What the engine's loader takes for the network's tensors, adapters merged, while its GPU waits.
/// `single_experts`: each expert's are tensors of their own. Where the engine's was not timed, as
/// long as vLLM's.
double loading_seconds(const Model& model, const RolloutEngine& engine, bool single_experts);

/// The broadcast of all weights to every GPU of the engines, and their loaders.
void add_broadcast(TimeEstimate& sum, const Rlhf& rlhf, const TimeRates& rates);

}  // namespace shardplan
