// The job that runs a plan: what was asked, with the plan's values in place.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "export/export.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "job/parallel_json.h"
#include "save/checkpointing.h"

namespace shardplan {
namespace {

Json framework_json(const Plan& plan) {
  Json json{{"name", name_of(plan.framework.kind)}};
  planning_of(plan).write_options(json, plan);
  return json;
}

/// The cluster as asked, with the plan's number of GPUs.
Json cluster_json(const Json& asked, const Cluster& c) {
  Json json = asked.is_string() ? Json{{"name", asked}} : asked;
  if (json.contains("name")) {
    json["name"] = fmt::format("{}x{}x{}", c.nodes, c.gpus_per_node, c.gpu.name);
    if (c.host_memory) json["host_memory_bytes"] = c.host_memory->count();
    if (c.nvme) {
      Json& nvme = json["nvme"] = Json{{"bytes", c.nvme->capacity.count()}};
      if (c.nvme->read_bandwidth) nvme["read_bandwidth"] = *c.nvme->read_bandwidth;
      if (c.nvme->write_bandwidth) nvme["write_bandwidth"] = *c.nvme->write_bandwidth;
    }
  } else {
    json["nodes"] = c.nodes;
    json["gpus_per_node"] = c.gpus_per_node;
  }
  return json;
}

}  // namespace

Json job_json(const Json& asked, const Job& job) {
  const Plan& plan = job.plan;
  const bool deepspeed = traits_of(plan).has_zero;
  Json json{{"schema", "shardplan.job/1"}};
  json.update(asked);
  json["cluster"] = cluster_json(asked.at("cluster"), plan.cluster);
  json["framework"] = framework_json(plan);
  Json& workload = json["workload"];
  workload["micro_batch"] = plan.workload.micro_batch;
  workload["sequence_length"] = plan.workload.sequence_length;
  workload["gradient_accumulation"] = plan.workload.gradient_accumulation;
  json["checkpointing"] = checkpointing_json(plan);
  json.erase("mlp_tiles");
  if (plan.mlp_tiles > 0) json["mlp_tiles"] = plan.mlp_tiles;
  json.erase("parallel");
  if (!plan.parallel.only_data()) json["parallel"] = parallel_json(plan);
  json.erase("precision");  // DeepSpeed's is in ds_config.json
  const bool spelled_out = asked.contains("precision") && asked.at("precision").is_object();
  if (!deepspeed && spelled_out) json["precision"] = asked.at("precision");
  if (!deepspeed && !spelled_out) json["precision"] = plan.precision.name;
  json["gradient_clipping"] = plan.gradient_clipping;
  return json;
}

}  // namespace shardplan
