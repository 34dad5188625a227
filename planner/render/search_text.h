// The answer of `shardplan search`.
#pragma once

#include <string>
#include <string_view>
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

/// The name of an axis in words: "micro-batch" of "micro_batch".
std::string axis_words(std::string_view name);
/// The same where there is little room: "bucket" of "reduce_bucket_size".
std::string axis_head(std::string_view name);

/// `job` with the plan that was found in place of its own.
Job job_with(const Job& job, const Plan& plan);

}  // namespace shardplan
