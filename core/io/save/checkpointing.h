// A plan's checkpointing as a job says it.
#pragma once

#include "json/document.h"
#include "plan/plan.h"

namespace shardplan {

/// A word for policies without numbers, else an object.
Json checkpointing_json(const Plan& plan);

}  // namespace shardplan
