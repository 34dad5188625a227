#include "hardware/interconnect.h"

#include <fmt/format.h>

#include <string_view>

#include "base/units.h"

namespace shardplan {
namespace {

/// Returns whether the rate is assumed.
bool fill_intra_node(Cluster& cluster) {
  const Gpu& gpu = cluster.gpu;
  const bool many = cluster.gpus_per_node > 1;
  if (gpu.nvlink_bandwidth && (!gpu.nvlink_pairs_only || cluster.gpus_per_node <= 2)) {
    cluster.intra_node_bandwidth = *gpu.nvlink_bandwidth;
    cluster.intra_node_link = gpu.nvlink_link;
    if (!gpu.nvlink_pairs_only || !many) return is_unverified(gpu.unverified, "nvlink");
    cluster.notes.push_back(
        fmt::format("the two {} are assumed to be joined by an NVLink bridge", gpu.name));
    return true;
  }
  const bool known = gpu.pcie_bandwidth.has_value();
  cluster.intra_node_bandwidth = gpu.pcie_bandwidth.value_or(kAssumedPcie);
  cluster.intra_node_link = known ? gpu.pcie_link : "PCIe-gen4-x16";
  if (many && gpu.nvlink_pairs_only) {
    cluster.notes.push_back(fmt::format(
        "NVLink bridges join the {} only in pairs: between all of them PCIe is used", gpu.name));
  }
  if (many && !known)
    cluster.notes.emplace_back("the link between the GPUs of a node is assumed to be PCIe gen 4");
  return !known || is_unverified(gpu.unverified, "pcie");
}

const DefaultNetwork* default_network(const Gpu& gpu, const HardwareCatalog& catalog) {
  const bool fabric = gpu.nvlink_bandwidth.has_value() && !gpu.nvlink_pairs_only;
  const DefaultNetwork* fallback = nullptr;
  for (const DefaultNetwork& row : catalog.default_networks) {
    if (row.arch.empty()) fallback = &row;
    if (fabric && !row.arch.empty() && row.arch == gpu.arch) return &row;
  }
  return fallback;
}

void assume_inter_node(Cluster& cluster, const HardwareCatalog& catalog) {
  const DefaultNetwork* network = default_network(cluster.gpu, catalog);
  const Link* link = network == nullptr ? nullptr : find_link(catalog, network->link);
  if (link == nullptr) return;
  const double ports_per_gpu = network->ports_per_gpu.value_or(
      network->ports_per_node.value_or(1) / static_cast<double>(cluster.gpus_per_node));
  cluster.inter_node_bandwidth = link->bandwidth * ports_per_gpu;
  cluster.inter_node_link = link->name;
  if (cluster.nodes == 1) return;
  const bool per_gpu = network->ports_per_gpu.has_value();
  cluster.notes.push_back(fmt::format(
      "the network between nodes is assumed: {} port(s) of {} per {}, {:.4g} GB/s per GPU",
      per_gpu ? *network->ports_per_gpu : *network->ports_per_node, link->name,
      per_gpu ? "GPU" : "node", cluster.inter_node_bandwidth / kGiga));
}

/// What the named links say beside their rates.
void fill_from_links(Cluster& cluster, const HardwareCatalog& catalog) {
  const auto share = [](const Link* link) {
    return link != nullptr && link->effective ? std::optional(*link->effective / link->bandwidth)
                                              : std::nullopt;
  };
  const Link* within = find_link(catalog, cluster.intra_node_link);
  cluster.intra_node_share = share(within);
  cluster.inter_node_share = share(find_link(catalog, cluster.inter_node_link));
  if (within != nullptr) cluster.switch_all_reduce = within->switch_all_reduce;
}

}  // namespace

double share_of_gpu(const Link& link, std::int64_t gpus_per_node) {
  return link.per == LinkShare::node ? link.bandwidth / static_cast<double>(gpus_per_node)
                                     : link.bandwidth;
}

void fill_interconnect(Cluster& cluster, const KnownInterconnect& known,
                       const HardwareCatalog& catalog) {
  bool intra_assumed = false;
  if (known.intra_node) {
    cluster.intra_node_bandwidth = *known.intra_node;
    cluster.intra_node_link = known.intra_node_link;
  } else {
    intra_assumed = fill_intra_node(cluster);
  }
  bool inter_assumed = known.inter_node_unverified;
  if (known.inter_node) {
    cluster.inter_node_bandwidth = *known.inter_node;
    cluster.inter_node_link = known.inter_node_link;
  } else {
    inter_assumed = true;
    assume_inter_node(cluster, catalog);
  }
  fill_from_links(cluster, catalog);
  const bool assumed =
      (cluster.gpus_per_node > 1 && intra_assumed) || (cluster.nodes > 1 && inter_assumed);
  cluster.interconnect_source = assumed ? Source::assumed : Source::measured;
}

}  // namespace shardplan
