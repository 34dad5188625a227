// torch.compile of a job: false, true, or an object.
#pragma once

#include "json/reader.h"
#include "plan/plan.h"

namespace shardplan {

/// What `job` says under "compile"; none: an eager step. Throws InputError for another type, an
/// unknown key or an unknown name.
std::optional<Compile> read_compile(ObjectReader& job, const TrainerDescription& trainer);

}  // namespace shardplan
