// Changes that take states off the hosts, of jobs that have some there.
#pragma once

#include <vector>

#include "questions/changes.h"

namespace shardplan {

/// Of a plan under DeepSpeed that offloads: parameters back on the GPUs, everything back on them,
/// and both on NVMe where the machine has some. Empty for any other plan.
std::vector<Change> less_on_hosts(const Plan& plan);

}  // namespace shardplan
