// A plan that was changed, written back into the job that it came from.
#pragma once

#include <string>

#include "json/document.h"
#include "plan/plan.h"

namespace shardplan {

/// The job that means `after`, where `job` means `before`: what differs is set, all else stays as
/// it was written. Covers what questions change: framework, stage, offload, buckets, reuse, batch,
/// sequence, precision, checkpointing and the number of GPUs. DeepSpeed options without a field of
/// their own turn `framework` into a ds_config inside the job; a ds_config that was a file below
/// `directory` is then copied into it.
Json rewritten(const Json& job, const std::string& directory, const Plan& before,
               const Plan& after);

}  // namespace shardplan
