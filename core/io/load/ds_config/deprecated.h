// Old spellings of a ds_config, moved to where DeepSpeed reads them today.
#pragma once

#include "json/document.h"
#include "load/ds_config/findings.h"

namespace shardplan {

/// Rewrites `document`: deprecated keys and accepted second names become the current key, with a
/// warning; an old and a new spelling together are an error, as in DeepSpeed
/// (runtime/config_utils.py _process_deprecated_field).
void move_deprecated(Json& document, DsFindings& findings);

}  // namespace shardplan
