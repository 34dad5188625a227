// A job of kind rlhf: every model that takes part is a job of its own, which says only what it does
// not have from the whole.
#pragma once

#include <string>

#include "load/job.h"

namespace shardplan {

/// Whether the job's workload is of kind rlhf.
bool is_rlhf(const Json& job);

/// Throws InputError naming `file` and the key.
Job load_rlhf_job(const Json& job, const std::string& file, const JobContext& context);

}  // namespace shardplan
