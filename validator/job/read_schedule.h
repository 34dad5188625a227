// The `scheduler` of a job's `run`, with DeepSpeed's names: {"type": "WarmupLR", "params": {...}}.
#pragma once

#include "engine/schedule.h"
#include "json/reader.h"

namespace shardplan::validator {

/// Without one the rate is constant; it is also the default of a schedule's largest rate.
Schedule read_schedule(ObjectReader& run, double rate);

}  // namespace shardplan::validator
