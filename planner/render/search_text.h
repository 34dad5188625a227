// The answer of `shardplan search`.
#pragma once

#include <string>
#include <vector>

#include "json/document.h"
#include "load/job.h"
#include "questions/search/reasons.h"
#include "questions/search/search.h"

namespace shardplan {

/// All that an answer shows.
struct SearchAnswer {
  const Job& job;  ///< as it was asked
  const SearchSpace& space;
  const Goal& goal;
  const SearchResult& result;
  std::vector<OtherChoice> others;  ///< around the best plan
  const Calibration& calibration;
};

/// The best plan and why, the front (at most `rows` of it), and what ruled the others out.
std::string search_text(const SearchAnswer& answer, std::size_t rows);

/// shardplan.search/1: everything; each plan with its values, its estimate and its cost.
Json search_json(const SearchAnswer& answer);

/// `job` with the plan that was found in place of its own.
Job job_with(const Job& job, const Plan& plan);

}  // namespace shardplan
