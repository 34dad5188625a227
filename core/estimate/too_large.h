// Which number of a job makes its sizes too large to count.
#pragma once

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace shardplan {

/// What to throw in place of an OverflowError: the largest of the workload's numbers, by its key.
InputError too_large(const Workload& workload);

}  // namespace shardplan
