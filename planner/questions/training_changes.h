// Changes to a training job that its fields say: what the model or the machine would be then.
#pragma once

#include <vector>

#include "load/job.h"
#include "questions/changes.h"

namespace shardplan {

/// Those that make the job need less, beside the changes of its plan (changes.h): fused kernels,
/// adapters, states in 8 bits, parameters in 16, states on the host, more GPUs. `written` means
/// `job`. Some may not be possible beside what else the job says: loading it tells.
std::vector<Change> training_changes(const Job& job, const Json& written);

}  // namespace shardplan
