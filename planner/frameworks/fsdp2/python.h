// Keyword arguments of PyTorch's fully_shard.
#pragma once

#include <string>

#include "export/export.h"

namespace shardplan {

/// Those of the plan, and a function that applies them. Throws InputError when the job runs under
/// another framework.
std::string fsdp2_python(const Job& job, const Estimate& estimate);

}  // namespace shardplan
