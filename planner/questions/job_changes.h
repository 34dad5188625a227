// Single changes to a job of generation or of several models, each said by a few of its fields.
#pragma once

#include <vector>

#include "load/job.h"
#include "questions/changes.h"

namespace shardplan {

/// Changes that make the job need less, of those that apply to it. `written` means `job`. Some may
/// not be possible beside what else the job says: loading it tells.
std::vector<Change> lighter_changes(const Job& job, const Json& written);

}  // namespace shardplan
