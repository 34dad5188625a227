#include <nlohmann/json.hpp>

#include "render/cost_text.h"
#include "render/describe.h"
#include "render/fixes_text.h"
#include "render/search_text.h"
#include "save/estimate.h"

namespace shardplan {
namespace {

Json values_json(const SearchSpace& space, const Choice& choice) {
  Json json = Json::object();
  for (std::size_t a = 0; a < space.axes.size(); ++a)
    json[space.axes[a].name] = space.axes[a].values[choice[a]];
  return json;
}

Json found_json(const SearchAnswer& a, const Found& f) {
  return Json{
      {"index", f.index},
      {"values", values_json(a.space, f.choice)},
      {"estimate", to_json(f.estimate, job_with(a.job, f.plan))},
      {"cost", cost_json(cost_of(a.job.model, f.plan, f.estimate, a.goal.terms), f.plan.cluster)}};
}

Json others_json(const SearchAnswer& a) {
  Json list = Json::array();
  for (const OtherChoice& other : a.others)
    list.push_back(Json{{"axis", a.space.axes[other.axis].name},
                        {"value", a.space.axes[other.axis].values[other.value]},
                        {"fits", other.estimate.verdict.fits},
                        {"verdict", name_of(overall(other.estimate.verdict))},
                        {"slowdown", other.slowdown},
                        {"device_bytes_added", other.gpu_added},
                        {"device_upper_bytes", other.estimate.device.upper}});
  return list;
}

}  // namespace

Json search_json(const SearchAnswer& a) {
  const SearchResult& r = a.result;
  Json json{{"schema", "shardplan.search/1"}, {"objective", name_of(a.goal.objective)},
            {"candidates", r.candidates},     {"estimated", r.estimated},
            {"simulated", r.simulated},       {"interrupted", r.interrupted}};
  json["model"] =
      Json{{"name", a.job.model.facts.name}, {"parameters", a.job.model.parameter_count()}};
  json["cluster"] = describe_cluster(a.job.plan.cluster);
  json["usable_bytes"] = a.space.base.cluster.gpu.usable.count();
  json["axes"] = Json::object();
  for (const Axis& axis : a.space.axes) json["axes"][axis.name] = axis.values;
  json["ruled_out"] = Json::array();
  for (const RuleCount& rule : r.ruled_out)
    json["ruled_out"].push_back(Json{{"rule", rule.sentence}, {"count", rule.count}});
  json["front"] = Json::array();
  for (const Found& f : r.front) json["front"].push_back(found_json(a, f));
  json["best"] = r.front.empty() ? Json(nullptr) : json["front"].front();
  json["other_choices"] = others_json(a);
  json["near_miss"] = r.near_miss ? found_json(a, r.near_miss->plan) : Json(nullptr);
  if (r.near_miss) {
    json["near_miss"]["fixes"] = fixes_json(r.near_miss->fixes);
    json["near_miss"]["enough_gpus"] =
        r.near_miss->enough_gpus ? Json(*r.near_miss->enough_gpus) : Json(nullptr);
  }
  json["beyond_limits"] = r.beyond_limits ? found_json(a, *r.beyond_limits) : Json(nullptr);
  return json;
}

}  // namespace shardplan
