// A checked ds_config as the plan's DeepSpeedOptions.
#pragma once

#include "frameworks/deepspeed/options.h"
#include "load/ds_config/batch_triangle.h"
#include "load/ds_config/values.h"

namespace shardplan {

DeepSpeedOptions make_deepspeed_options(const DsValues& values, const BatchTriangle& batch);

}  // namespace shardplan
