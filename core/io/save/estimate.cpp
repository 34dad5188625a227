#include "save/estimate.h"

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

Json range(const Range& r) {
  return Json{{"least", r.least}, {"point", r.point}, {"upper", r.upper}};
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

Json phases(const Estimate& e) {
  Json json{{"model", e.model_bytes}};
  for (const Phase phase : e.run) {
    const PhaseBytes& bytes = e.phases[static_cast<std::size_t>(phase)];
    json[std::string(name_of(phase)) + "_peak"] = bytes.peak;
    json[std::string(name_of(phase)) + "_end"] = bytes.end;
  }
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
  json["phases"] = phases(e);
  Json breakdown = Json::array();
  for (const CategoryLine& line : e.breakdown) {
    if (line.category == Category::kv_cache && line.at_peak == 0) continue;  // only generation has
    breakdown.push_back(Json{{"category", name_of(line.category)},
                             {"resident_bytes", line.resident},
                             {"at_peak_bytes", line.at_peak},
                             {"source", name_of(line.source)}});
  }
  json["breakdown"] = std::move(breakdown);
  return json;
}

Json gpu_groups(const GpuGroups& g) {
  return {{"trainer_gpus", g.trainer_gpus},
          {"engine_gpus", g.engine_gpus},
          {"at_once", g.at_once},
          {"handover_seconds", g.handover_seconds},
          {"passes_seconds", g.passes_seconds},
          {"answers_seconds", g.answers_seconds},
          {"trainer_waits_seconds", g.trainer_waits},
          {"engine_waits_seconds", g.engine_waits}};
}

Json models_apart(const ModelsApart& g) {
  return {{"models", g.names},
          {"gpus", g.gpus},
          {"device_bytes", g.device.point},
          {"device_upper_bytes", g.device.upper},
          {"usable_bytes", g.usable_bytes},
          {"fit", name_of(g.verdict.gpu.fit)},
          {"scores_seconds", g.scores_seconds},
          {"trains_seconds", g.trains_seconds}};
}

Json time(const TimeEstimate& t) {
  Json json{{"step_seconds", t.step_seconds},
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
  if (t.error) json["error"] = step_error_json(*t.error);
  if (t.generation) {
    json["prefill_seconds"] = t.generation->prefill_seconds;
    json["prefill_tokens_per_second"] = t.generation->prefill_tokens_per_second;
    json["decode_seconds"] = t.generation->decode_seconds;
    json["decode_tokens_per_second"] = t.generation->decode_tokens_per_second;
    json["decode_speed_of_light_seconds"] = t.generation->decode_speed_of_light;
  }
  for (const TimeEstimate::PhaseTime& phase : t.phases)
    json["phases"].push_back(Json{{"phase", name_of(phase.phase)}, {"seconds", phase.seconds}});
  if (t.groups) json["gpu_groups"] = gpu_groups(*t.groups);
  return json;
}

/// The models of an rlhf job.
Json rlhf_models(const Rlhf& rlhf) {
  Json models = Json::array();
  for (const Role* role : rlhf.all_roles())
    models.push_back(Json{{"role", name_of(role->kind)},
                          {"model", role->model.facts.name},
                          {"parameters", role->model.parameter_count()},
                          {"trains", role->trains},
                          {"idle", name_of(role->idle)}});
  return Json{{"algorithm", name_of(rlhf.algorithm)}, {"models", std::move(models)}};
}

}  // namespace

Json step_error_json(const StepError& error) {
  return {
      {"kind", error.kind}, {"runs", error.runs}, {"mean", error.mean}, {"largest", error.largest}};
}

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
    case Phase::prefill:
      return "prefill";
    case Phase::decode:
      return "decode";
    case Phase::generation:
      return "generation";
    case Phase::experience:
      return "experience";
    case Phase::actor_training:
      return "actor_training";
    case Phase::critic_training:
      return "critic_training";
  }
  return "";
}

Json to_json(const ServingEstimate& s) {
  return Json{{"replicas", s.replicas},
              {"sequences", s.sequences},
              {"sequences_limited_by", s.limited_by},
              {"room", s.room},
              {"cache_bytes", s.memory.cache},
              {"cache_blocks", s.memory.blocks},
              {"block_bytes", s.memory.block_bytes},
              {"weight_bytes", s.memory.weights},
              {"budget_bytes", s.memory.budget},
              {"tokens_per_second", s.tokens_per_second},
              {"tokens_per_second_of_a_sequence", s.token_seconds > 0 ? 1 / s.token_seconds : 0.0},
              {"requests_per_second", s.requests_per_second},
              {"first_token_seconds", s.first_token_seconds},
              {"first_token_seconds_when_full", s.loaded_first_seconds},
              {"pass_seconds", s.pass.seconds()},
              {"pass_seconds_without_prompts", s.quiet_token_seconds},
              {"host_seconds_per_pass", s.pass.host},
              {"prompt_tokens_per_pass", s.prompt_tokens}};
}

Json to_json(const Estimate& e, const Job& job) {
  Json json;
  json["schema"] = "shardplan.estimate/1";
  json["verdict"] = verdict(e.verdict);
  json["model"] = Json{{"name", job.model.facts.name},
                       {"parameters", e.parameters},
                       {"trainable_parameters", e.trainable_parameters},
                       {"tensors", e.tensors}};
  if (job.rlhf) json["rlhf"] = rlhf_models(*job.rlhf);
  json["gpu"] = gpu(e);
  json["host"] = Json{{"bytes_per_node", e.host_per_node.total()},
                      {"pinned_bytes_per_node", e.host_per_node.pinned}};
  if (e.host_growth_of_process > 0)
    json["host"]["growth_of_process_bytes"] = e.host_growth_of_process;
  json["nvme"] = Json{{"bytes_per_node", e.host_per_node.nvme}};
  Json traffic = Json::array();
  for (const TrafficLine& line : e.traffic)
    traffic.push_back(Json{{"what", line.what},
                           {"link", name_of(line.link)},
                           {"bytes_per_step", line.bytes_per_step},
                           {"bytes_between_nodes_per_step", line.bytes_between_nodes},
                           {"payload_bytes", line.payload_bytes},
                           {"count", line.count}});
  json["traffic"] = std::move(traffic);
  json["time"] = time(e.time);
  if (e.serving) json["serving"] = to_json(*e.serving);
  for (const ModelsApart& group : e.apart) json["models_apart"].push_back(models_apart(group));
  if (e.iterations)
    json["iterations"] = Json{{"count", e.iterations->count},
                              {"shortest_longest_answer", e.iterations->shortest},
                              {"longest_answer", e.iterations->longest},
                              {"reserved_bytes", e.iterations->reserved},
                              {"reserved_bytes_if_alike", e.iterations->alike}};
  if (e.typical)
    json["typical_step"] = Json{{"tokens_per_sample", e.typical->tokens},
                                {"counted_share", e.typical->counted},
                                {"allocated_bytes", e.typical->allocated}};
  Json warnings = Json::array();
  for (const Diagnostic& d : job.diagnostics) warnings.push_back(to_string(d));
  json["warnings"] = std::move(warnings);
  json["assumed"] = job.assumed;
  return json;
}

}  // namespace shardplan
