// The keys of a ds_config.json that are a member of DeepSpeedOptions each, by their whole path.
// Their defaults are the structure's: data/deepspeed/schema.json has only what changed between
// versions.
#pragma once

#include "frameworks/deepspeed/options.h"
#include "options/option.h"

namespace shardplan {

extern const OptionTable<DeepSpeedOptions> kDsConfigTable;

}  // namespace shardplan
