// How a program of DeepSpeed is started.
#pragma once

#include "frameworks/planning.h"

namespace shardplan {

Launch deepspeed_launch(const Job& job);

}  // namespace shardplan
