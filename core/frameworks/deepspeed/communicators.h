// The communicators that DeepSpeed opens.
#pragma once

#include "parallel/communicator_list.h"

namespace shardplan {

void deepspeed_communicators(CommunicatorList& list, const Plan& plan);

}  // namespace shardplan
