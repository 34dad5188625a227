#include "timing/collective_time.h"

#include <algorithm>
#include <cmath>

#include "hardware/interconnect.h"

namespace shardplan {
namespace {

/// The group of an event; without ranks of its own it is the whole cluster.
GroupShape among(const GroupShape& group, const Cluster& c) {
  return group.ranks > 0 ? group : GroupShape{c.world(), c.nodes};
}

/// bytes/s of one GPU: a ring over nodes is as fast as its slowest link, and all GPUs that a group
/// has in a node carry a share of what crosses to the next.
double bandwidth(const GroupShape& group, const Cluster& c, double node_share,
                 double network_share) {
  const double node = c.intra_node_bandwidth * node_share;
  if (group.nodes == 1) return node;
  const std::int64_t in_node = std::max<std::int64_t>(1, group.ranks / group.nodes);
  const double network = c.inter_node_bandwidth * static_cast<double>(in_node) * network_share;
  return in_node == 1 ? network : std::min(node, network);
}

}  // namespace

std::int64_t bytes_sent(Collective collective, std::int64_t payload, std::int64_t ranks) {
  if (ranks <= 1) return 0;
  if (collective == Collective::send) return payload;
  if (collective == Collective::ring) return checked_mul(payload, ranks - 1);
  const std::int64_t once = payload - payload / ranks;
  return collective == Collective::all_reduce ? checked_mul(2, once) : once;
}

std::int64_t bytes_between_nodes(Collective collective, std::int64_t payload,
                                 const GroupShape& group) {
  if (group.nodes <= 1) return 0;
  const std::int64_t in_node = std::max<std::int64_t>(1, group.ranks / group.nodes);
  if (collective == Collective::all_to_all) return payload / group.ranks * (group.ranks - in_node);
  return bytes_sent(collective, payload, group.ranks) / in_node;
}

double collective_seconds(const Event& event, const GroupShape& shape, const Cluster& cluster,
                          const LinkRates& rates) {
  const GroupShape group = among(shape, cluster);
  if (group.ranks <= 1) return 0;
  const double rate = bandwidth(group, cluster, rates.node, rates.network);
  if (rate <= 0) return 0;
  const double call =
      rates.seconds + rates.node_seconds * std::log2(static_cast<double>(group.nodes));
  return static_cast<double>(bytes_sent(event.collective, event.bytes, group.ranks)) / rate +
         call * static_cast<double>(event.count);
}

double ideal_collective_seconds(const Event& event, const GroupShape& shape,
                                const Cluster& cluster) {
  const GroupShape group = among(shape, cluster);
  const double rate = bandwidth(group, cluster, 1, 1);
  if (rate <= 0) return 0;
  return static_cast<double>(bytes_sent(event.collective, event.bytes, group.ranks)) / rate;
}

double copy_seconds(const Event& event, const Cluster& cluster, const LinkRates& rates) {
  const auto bytes = static_cast<double>(event.bytes);
  if (event.link == LinkKind::nvme) {
    constexpr double kOneDrive = 5e9;  // generation 4
    const auto& nvme = cluster.nvme;
    const auto rate = !nvme             ? std::nullopt
                      : event.to_device ? nvme->read_bandwidth
                                        : nvme->write_bandwidth;
    return bytes * static_cast<double>(cluster.gpus_per_node) / rate.value_or(kOneDrive);
  }
  return bytes / (cluster.gpu.pcie_bandwidth.value_or(kAssumedPcie) * rates.host);
}

}  // namespace shardplan
