// The job that runs a plan: what was asked, with the plan's values in place.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "export/export.h"
#include "frameworks/megatron/saved_inputs.h"
#include "frameworks/registry.h"
#include "job/parallel_json.h"

namespace shardplan {
namespace {

Json framework_json(const Plan& plan) {
  const Framework& framework = plan.framework;
  Json json{{"name", name_of(framework.kind)}};
  switch (framework.kind) {
    case FrameworkKind::deepspeed: {
      const DeepSpeedVersion& v = framework.deepspeed.version;
      json["version"] = fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
      json["auto"] = "nobody";
      json["ds_config"] = "ds_config.json";
      const DeepSpeedOptions& o = framework.deepspeed;
      if (o.activation_checkpointing.called && plan.checkpointing == Checkpointing::full)
        json["checkpoint_function"] = "deepspeed";
      if (o.moe)
        json["moe"] = Json{{"capacity_factor", o.moe->capacity_factor},
                           {"min_capacity", o.moe->min_capacity},
                           {"drop_tokens", o.moe->drop_tokens}};
      break;
    }
    case FrameworkKind::fsdp2:
      json["reshard_after_forward"] = framework.fsdp2.reshard_after_forward;
      json["cpu_offload"] = framework.fsdp2.cpu_offload;
      if (framework.fsdp2.hybrid_shard_size)
        json["hybrid_shard_size"] = *framework.fsdp2.hybrid_shard_size;
      if (framework.fsdp2.reduce_dtype)
        json["reduce_dtype"] = name_of(*framework.fsdp2.reduce_dtype);
      break;
    case FrameworkKind::ddp:
      json["gradient_as_bucket_view"] = framework.ddp.gradient_as_bucket_view;
      json["zero_redundancy_optimizer"] = framework.ddp.zero_redundancy_optimizer;
      json["bucket_cap_mb"] =
          static_cast<double>(framework.ddp.bucket_cap_bytes) / static_cast<double>(kMiB);
      break;
    case FrameworkKind::megatron: {
      const MegatronOptions& m = framework.megatron;
      json["distributed_optimizer"] = m.distributed_optimizer;
      json["shard_gradients"] = m.shard_gradients;
      json["overlap_grad_reduce"] = m.overlap_grad_reduce;
      json["overlap_param_gather"] = m.overlap_param_gather;
      json["grad_reduce_dtype"] = name_of(m.gradients);
      if (m.bucket_size) json["bucket_size"] = *m.bucket_size;
      json["pad_buckets"] = m.pad_buckets;
      json["cross_entropy_fusion"] = m.cross_entropy_fusion;
      json["gradient_accumulation_fusion"] = m.gradient_accumulation_fusion;
      json["async_tensor_model_parallel_allreduce"] = m.async_tensor_model_parallel_allreduce;
      json["transformer_impl"] = m.transformer_engine ? "transformer_engine" : "local";
      json["tp_comm_overlap"] = m.tp_comm_overlap;
      json["distribute_saved_activations"] = distributes_saved_activations(plan);
      break;
    }
    default:
      break;
  }
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
  if (!plan.parallel.sequence_parallel) json["framework"].erase("tp_comm_overlap");
  Json& workload = json["workload"];
  workload["micro_batch"] = plan.workload.micro_batch;
  workload["sequence_length"] = plan.workload.sequence_length;
  workload["gradient_accumulation"] = plan.workload.gradient_accumulation;
  json["checkpointing"] = name_of(plan.checkpointing);
  json.erase("parallel");
  if (!plan.parallel.only_data()) json["parallel"] = parallel_json(plan);
  json.erase("precision");  // DeepSpeed's is in ds_config.json
  if (!deepspeed) json["precision"] = plan.precision.name;
  if (!deepspeed && plan.precision.name == "custom") json["precision"] = asked.at("precision");
  json["gradient_clipping"] = plan.gradient_clipping;
  return json;
}

}  // namespace shardplan
