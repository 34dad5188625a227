// What jobs can say of DeepSpeed: some of it is read by code of its own (load/framework.h).
#pragma once

#include "frameworks/framework.h"
#include "options/option.h"

namespace shardplan {

extern const OptionTable<Framework> kDeepSpeedOptionTable;
extern const OptionTable<DeepSpeedMoe> kDeepSpeedMoeTable;  ///< framework.moe

}  // namespace shardplan
