// A division over GPUs as a job writes it.
#pragma once

#include "json/document.h"
#include "plan/plan.h"

namespace shardplan {

/// The job's `parallel`: what differs from the defaults of its framework. The data-parallel degree
/// is left out, because it is what the others leave of the world.
Json parallel_json(const Plan& plan);

}  // namespace shardplan
