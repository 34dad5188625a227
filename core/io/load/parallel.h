// The `parallel` of a job.
#pragma once

#include "json/reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// The degrees as written, and those of a ds_config (`config`; null without one) where the job is
/// silent. Throws where the two differ, or where the degrees do not multiply to the world.
Parallel read_parallel(ObjectReader& job, const Plan& plan, const Json& ds_config);

/// Throws for the first degree that the model, the cluster or the framework rules out.
void check_parallel(const ObjectReader& job, const Model& model, const Plan& plan);

}  // namespace shardplan
