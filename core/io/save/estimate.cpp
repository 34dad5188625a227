#include "save/estimate.h"

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

Json range(const Range& r) {
  return Json{{"point", r.point}, {"upper", r.upper}};
}

Json resource(const ResourceVerdict& r) {
  Json json{{"verdict", name_of(r.fit)}, {"needed_bytes", r.needed}};
  json["available_bytes"] = r.available ? Json(*r.available) : Json(nullptr);
  return json;
}

Json verdict(const Verdict& v) {
  Json json;
  json["fits"] = v.fits;
  json["headroom_bytes"] = v.headroom_bytes;
  json["limited_by"] = v.limited_by.empty() ? Json(nullptr) : Json(v.limited_by);
  json["gpu"] = resource(v.gpu);
  json["host"] = resource(v.host);
  json["nvme"] = resource(v.nvme);
  return json;
}

Json gpu(const Estimate& e) {
  Json json;
  json["capacity_bytes"] = e.capacity_bytes;
  json["usable_bytes"] = e.usable_bytes;
  json["peak"] = Json{{"allocated", range(e.allocated)},
                      {"reserved", range(e.reserved)},
                      {"device", range(e.device)}};
  json["peak_phase"] = name_of(e.peak_phase);
  json["rank"] = e.rank;
  json["phases"] = Json{{"model", e.model_bytes},          {"forward_peak", e.phases[0].peak},
                        {"forward_end", e.phases[0].end},  {"backward_peak", e.phases[1].peak},
                        {"backward_end", e.phases[1].end}, {"step_peak", e.phases[2].peak},
                        {"step_end", e.phases[2].end}};
  Json breakdown = Json::array();
  for (const CategoryLine& line : e.breakdown)
    breakdown.push_back(Json{{"category", name_of(line.category)},
                             {"resident_bytes", line.resident},
                             {"at_peak_bytes", line.at_peak},
                             {"source", name_of(line.source)}});
  json["breakdown"] = std::move(breakdown);
  return json;
}

Json time(const TimeEstimate& t) {
  return Json{{"step_seconds", t.step_seconds},
              {"tokens_per_second", t.tokens_per_second},
              {"mfu", t.mfu},
              {"exposed_communication_seconds", t.exposed_communication_seconds},
              {"compute_seconds", t.compute_seconds},
              {"communication_seconds", t.communication_seconds},
              {"exposed_copy_seconds", t.exposed_copy_seconds},
              {"optimizer_seconds", t.optimizer_seconds},
              {"bubble_seconds", t.bubble_seconds},
              {"idle_seconds", t.idle_seconds},
              {"hfu", t.hfu},
              {"speed_of_light_seconds", t.speed_of_light_seconds},
              {"source", name_of(t.source)}};
}

}  // namespace

std::string_view name_of(LinkKind link) {
  switch (link) {
    case LinkKind::gpu:
      return "gpu";
    case LinkKind::host:
      return "host";
    case LinkKind::nvme:
      return "nvme";
  }
  return "";
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::step:
      return "step";
  }
  return "";
}

Json to_json(const Estimate& e, const Job& job) {
  Json json;
  json["schema"] = "shardplan.estimate/1";
  json["verdict"] = verdict(e.verdict);
  json["model"] = Json{{"name", job.model.facts.name},
                       {"parameters", e.parameters},
                       {"trainable_parameters", e.trainable_parameters},
                       {"tensors", e.tensors}};
  json["gpu"] = gpu(e);
  json["host"] = Json{{"bytes_per_node", e.host_per_node.total()},
                      {"pinned_bytes_per_node", e.host_per_node.pinned}};
  json["nvme"] = Json{{"bytes_per_node", e.host_per_node.nvme}};
  Json traffic = Json::array();
  for (const TrafficLine& line : e.traffic)
    traffic.push_back(Json{{"what", line.what},
                           {"link", name_of(line.link)},
                           {"bytes_per_step", line.bytes_per_step},
                           {"payload_bytes", line.payload_bytes},
                           {"count", line.count}});
  json["traffic"] = std::move(traffic);
  json["time"] = time(e.time);
  Json warnings = Json::array();
  for (const Diagnostic& d : job.diagnostics) warnings.push_back(to_string(d));
  for (const std::string& w : e.warnings) warnings.push_back(w);
  json["warnings"] = std::move(warnings);
  json["assumed"] = job.assumed;
  return json;
}

}  // namespace shardplan
