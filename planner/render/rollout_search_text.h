// The answer of a search among ways to run reinforcement learning, for people and for programs.
#pragma once

#include <string>

#include "json/document.h"
#include "load/job.h"
#include "questions/search/rollout_search.h"

namespace shardplan {

/// `written` means `job`: what differs from it is said of the best. The first `rows` of the others.
std::string rollout_search_text(const Job& job, const Json& written, const RolloutFound& found,
                                std::size_t rows);
Json rollout_search_json(const RolloutFound& found);

}  // namespace shardplan
