// Every key of a ds_config against the schema: known or not, its type, its range.
#pragma once

#include "frameworks/deepspeed/options.h"
#include "json/document.h"
#include "load/ds_config/findings.h"

namespace shardplan {

/// The document without what is unknown or wrong (each reported), and with values in the type that
/// DeepSpeed reads them as: what the rules and the options are computed from.
Json check_keys(const Json& document, const DeepSpeedVersion& version, DsFindings& findings);

}  // namespace shardplan
