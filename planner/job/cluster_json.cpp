#include "job/cluster_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hardware/abilities.h"

namespace shardplan {
namespace {

void set(Json& object, const char* key, const std::optional<double>& value) {
  if (value && *value > 0) object[key] = *value;
}

Json peak_json(const PeakFlops& peak) {
  Json out = Json::object();
  peak.for_each([&](std::string_view name, const std::optional<double>& rate) {
    if (rate && *rate > 0) out[std::string(name)] = *rate;
  });
  return out;
}

Json gpu_json(const Gpu& gpu) {
  Json out{{"name", gpu.name},
           {"arch", gpu.arch},
           {"compute_capability", gpu.compute_capability},
           {"memory_bytes", gpu.capacity.count()},
           {"usable_bytes", gpu.usable.count()}};
  if (gpu.multiprocessors) out["multiprocessors"] = *gpu.multiprocessors;
  if (gpu.l2_cache_bytes) out["l2_cache_bytes"] = *gpu.l2_cache_bytes;
  set(out, "memory_bandwidth", gpu.memory_bandwidth);
  out["peak_flops"] = peak_json(gpu.peak);
  set(out, "nvlink_bandwidth", gpu.nvlink_bandwidth);
  set(out, "pcie_bandwidth", gpu.pcie_bandwidth);
  set(out, "tdp_watts", gpu.tdp_watts);
  if (!gpu.vendor.empty() && !gpu.assumed_abilities.empty()) out["vendor"] = gpu.vendor;
  for (const AbilityField& field : kAbilityFields)
    if (std::find(gpu.stated_abilities.begin(), gpu.stated_abilities.end(), field.key) !=
        gpu.stated_abilities.end())
      std::visit([&](auto member) { out[std::string(field.key)] = gpu.abilities.*member; },
                 field.member);
  return out;
}

Json nvme_json(const Nvme& nvme) {
  Json out{{"bytes", nvme.capacity.count()}};
  set(out, "read_bandwidth", nvme.read_bandwidth);
  set(out, "write_bandwidth", nvme.write_bandwidth);
  return out;
}

}  // namespace

Json cluster_json(const Cluster& c, bool own_gpu) {
  Json out;
  out["gpu"] = own_gpu ? gpu_json(c.gpu) : Json(c.gpu.name);
  out["gpus_per_node"] = c.gpus_per_node;
  out["nodes"] = c.nodes;
  if (c.host_memory) out["host_memory_bytes"] = c.host_memory->count();
  if (c.nvme) out["nvme"] = nvme_json(*c.nvme);
  Json links = Json::object();
  set(links, "intra_node_bandwidth", c.intra_node_bandwidth);
  set(links, "inter_node_bandwidth", c.inter_node_bandwidth);
  if (c.interconnect_source == Source::measured && !links.empty())
    out["interconnect"] = std::move(links);
  if (c.price_per_hour) out["price_per_hour"] = *c.price_per_hour;
  if (c.spot_price_per_hour) out["spot_price_per_hour"] = *c.spot_price_per_hour;
  if (const auto& storage = c.checkpoint_storage; storage && storage->said)
    out["storage"] = Json{{"read_bandwidth", storage->read_bandwidth},
                          {"write_bandwidth", storage->write_bandwidth}};
  if (c.failures && c.failures->counted_on.empty())
    out["hours_between_failures"] = c.failures->node_hours;
  return out;
}

}  // namespace shardplan
