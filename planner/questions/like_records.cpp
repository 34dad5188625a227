#include "questions/like_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "embedded/files.h"
#include "json/document.h"

namespace shardplan {
namespace {

bool is_like(const Plan& plan, const Plan& run, Likeness likeness) {
  if (likeness == Likeness::any) return true;
  const bool both_divided = plan.parallel.only_data() == run.parallel.only_data();
  if (framework_group(plan) != framework_group(run) || !both_divided) return false;
  if (likeness == Likeness::framework) return true;
  if (plan.precision.name != run.precision.name) return false;
  return likeness == Likeness::framework_precision || plan.cluster.world() == run.cluster.world();
}

/// The runs that data/measurements/split.json keeps out of every fit.
std::vector<std::string> held_out_names() {
  const Json split =
      parse_json(embedded_file("measurements/split.json"), "data/measurements/split.json");
  return split.at("held_out").get<std::vector<std::string>>();
}

}  // namespace

LikeRecords find_like_records(const Plan& plan, const RecordList& records) {
  LikeRecords like;
  RecordList chosen;
  for (const Likeness likeness : {Likeness::framework_gpus_precision, Likeness::framework_precision,
                                  Likeness::framework, Likeness::any}) {
    like.likeness = likeness;
    chosen.records.clear();
    for (const Record& r : records.records)
      if (is_like(plan, r.job.plan, likeness)) chosen.records.push_back(r);
    if (static_cast<std::int64_t>(chosen.records.size()) >= kFewestRuns) break;
  }
  like.errors = compare_with_records(chosen, AccuracyGroup::framework).all;
  const std::vector<std::string> held_out = held_out_names();
  for (const Record& r : chosen.records) {
    like.held_out += std::count(held_out.begin(), held_out.end(), r.name);
    const std::string& gpu = r.job.plan.cluster.gpu.name;
    if (gpu == plan.cluster.gpu.name) ++like.same_gpu;
    if (std::find(like.gpus.begin(), like.gpus.end(), gpu) == like.gpus.end())
      like.gpus.push_back(gpu);
  }
  return like;
}

}  // namespace shardplan
