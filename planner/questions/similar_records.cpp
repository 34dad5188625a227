#include "questions/similar_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "embedded/json.h"
#include "json/document.h"
#include "load/calibration.h"

namespace shardplan {
namespace {

bool is_like(const Plan& plan, const Plan& run, Similarity similarity) {
  if (similarity == Similarity::any) return true;
  const bool both_divided = plan.parallel.only_data() == run.parallel.only_data();
  if (framework_group(plan) != framework_group(run) || !both_divided) return false;
  if (similarity == Similarity::framework) return true;
  if (plan.precision.name != run.precision.name) return false;
  return similarity == Similarity::framework_precision ||
         plan.cluster.world() == run.cluster.world();
}

/// The runs that data/measurements/split.json keeps out of every fit.
std::vector<std::string> held_out_names() {
  const Json split = embedded_json("measurements/split.json");
  return split.at("held_out").get<std::vector<std::string>>();
}

}  // namespace

MeasuredRuns::MeasuredRuns(RecordList list)
    : records_(std::move(list.records)),
      calibration_(load_calibration()),
      predicted_(records_.size()) {
  const std::vector<std::string> names = held_out_names();
  for (const Record& r : records_)
    held_out_.push_back(std::find(names.begin(), names.end(), r.name) != names.end());
}

const Comparison* MeasuredRuns::compared(std::size_t run) const {
  Predicted& predicted = predicted_[run];
  std::call_once(predicted.once, [&] {
    try {
      predicted.comparison = compare_with_record(records_[run], calibration_);
    } catch (const InputError&) {  // `accuracy` says which and why
    }
  });
  return predicted.comparison ? &*predicted.comparison : nullptr;
}

SimilarRecords find_similar_records(const Plan& plan, const MeasuredRuns& runs) {
  SimilarRecords like;
  std::vector<std::size_t> chosen;
  for (const Similarity similarity :
       {Similarity::framework_gpus_precision, Similarity::framework_precision,
        Similarity::framework, Similarity::any}) {
    like.similarity = similarity;
    chosen.clear();
    for (std::size_t i = 0; i < runs.records().size(); ++i)
      if (is_like(plan, runs.records()[i].job.plan, similarity)) chosen.push_back(i);
    if (static_cast<std::int64_t>(chosen.size()) >= kFewestRuns) break;
  }
  std::vector<const Comparison*> comparisons;
  for (const std::size_t run : chosen) {
    if (const Comparison* c = runs.compared(run)) comparisons.push_back(c);
    like.held_out += runs.is_held_out(run) ? 1 : 0;
    const std::string& gpu = runs.records()[run].job.plan.cluster.gpu.name;
    if (gpu == plan.cluster.gpu.name) ++like.same_gpu;
    if (std::find(like.gpus.begin(), like.gpus.end(), gpu) == like.gpus.end())
      like.gpus.push_back(gpu);
  }
  like.errors = summary_of(comparisons);
  like.runs = std::move(chosen);
  return like;
}

}  // namespace shardplan
