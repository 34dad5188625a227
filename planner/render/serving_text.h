// What a served job is told, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "json/document.h"
#include "load/job.h"
#include "questions/fixes.h"
#include "questions/serving.h"

namespace shardplan {

/// The whole answer of `fit` and `estimate`; `fixes` may be empty.
std::string serving_text(const Estimate& e, const Job& job, const std::vector<ServingChoice>& all,
                         const std::vector<Fix>& fixes, const Calibration& calibration);

/// One object a choice.
Json serving_json(const std::vector<ServingChoice>& all);

/// The answer of a search among degrees.
std::string serving_search_text(const Job& job, const std::vector<ServingChoice>& found,
                                const ServingGoal& goal);

}  // namespace shardplan
