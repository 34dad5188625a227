// A plan as ds_config.json: every key that the plan decides, with a value and never "auto".
#pragma once

#include "json/document.h"
#include "load/ds_config/auto_values.h"
#include "plan/plan.h"

namespace shardplan {

/// `own` is the job's own ds_config, or null: what the plan does not decide (a scheduler, logging)
/// stays as it is there, with `autos` in place of "auto". Read back, it gives the same plan.
/// Throws InputError when the plan runs under another framework.
Json ds_config_of(const Plan& plan, const Json& own, const std::vector<ResolvedAuto>& autos);

}  // namespace shardplan
