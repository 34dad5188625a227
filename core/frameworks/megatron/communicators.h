// The communicators that Megatron-LM opens.
#pragma once

#include "parallel/communicator_list.h"

namespace shardplan {

void megatron_communicators(CommunicatorList& list, const Plan& plan);

}  // namespace shardplan
