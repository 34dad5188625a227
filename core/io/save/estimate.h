// An estimate as shardplan.estimate/1.
#pragma once

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/job.h"

namespace shardplan {

/// The whole estimate of a job, with its warnings and what was assumed.
Json to_json(const Estimate& estimate, const Job& job);

/// What an engine gives, of one of them unless it says of all.
Json to_json(const ServingEstimate& serving);

/// How far off steps of a kind were.
Json step_error_json(const StepError& error);

/// name of a link as the format has it: "gpu", "host", "nvme".
std::string_view name_of(LinkKind link);
std::string_view name_of(Phase phase);

}  // namespace shardplan
