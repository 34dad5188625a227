// A plan as arguments of Megatron-LM's pretrain_gpt.py.
#pragma once

#include <string>

#include "load/job.h"

namespace shardplan {

/// The lines of a script that set Megatron-LM's arguments: of the network, as `network`, where it
/// is one that they can say, and of the plan, as `arguments`.
std::string megatron_arguments(const Job& job);

}  // namespace shardplan
