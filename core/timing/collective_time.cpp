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

std::int64_t in_node(const GroupShape& group) {
  return std::max<std::int64_t>(1, group.ranks / group.nodes);
}

/// bytes/s that one GPU's port and its share of the node's adapters reach.
struct Rates {
  double port = 0, adapter = 0;
};

double seconds_of(const LinkBytes& bytes, const Rates& rates) {
  double seconds = 0;
  if (bytes.port > 0 && rates.port > 0) seconds = bytes.port / rates.port;
  if (bytes.adapter > 0 && rates.adapter > 0)
    seconds = std::max(seconds, bytes.adapter / rates.adapter);
  return seconds;
}

/// Times that a message goes from node to node, one after the other: NCCL's own count
/// (src/graph/tuning.cc). A ring goes through all nodes, twice for an all-reduce, which takes its
/// double tree where that is shorter.
double hops_between_nodes(Collective collective, std::int64_t nodes) {
  if (nodes <= 1) return 0;
  const auto ring = static_cast<double>(nodes - 1);
  switch (collective) {
    case Collective::all_reduce:
      return 2 * std::min(ring, std::log2(static_cast<double>(nodes)));
    case Collective::all_to_all:
    case Collective::send:
      return 1;
    default:
      return ring;
  }
}

bool reduced_in_switch(Collective collective, const GroupShape& group, const Cluster& c) {
  return collective == Collective::all_reduce && group.nodes == 1 &&
         group.ranks >= kLeastRanksOfSwitch && c.switch_all_reduce;
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
  if (collective == Collective::all_to_all)
    return payload / group.ranks * (group.ranks - in_node(group));
  if (collective == Collective::send) return payload;
  return bytes_sent(collective, payload, group.ranks) / in_node(group);
}

LinkBytes busiest_links(Collective collective, double payload, const GroupShape& group) {
  if (group.ranks <= 1) return {};
  const auto ranks = static_cast<double>(group.ranks);
  const auto near = static_cast<double>(in_node(group));
  const bool far = group.nodes > 1;
  switch (collective) {
    case Collective::send:
      return far ? LinkBytes{0, payload} : LinkBytes{payload, 0};
    case Collective::ring:  // every turn waits for the neighbours that are in two nodes
      return far ? LinkBytes{near > 1 ? payload * (ranks - 1) : 0, payload * (ranks - 1)}
                 : LinkBytes{payload * (ranks - 1), 0};
    case Collective::all_to_all: {
      const double each = payload / ranks;
      const double between = each * (ranks - near);
      // What is for a GPU of another number goes to the neighbour whose adapter is on that one's
      // rail first (PXN).
      const double turned = between * (near - 1) / near;
      return {each * (near - 1) + turned, between};
    }
    default: {  // rings, one for each of the node's adapters: all cross from node to node
      const double sent =
          payload * (ranks - 1) / ranks * (collective == Collective::all_reduce ? 2 : 1);
      return {near > 1 ? sent : 0, far ? sent / near : 0};
    }
  }
}

double collective_seconds(const Event& event, const GroupShape& shape, const Cluster& cluster,
                          const LinkRates& rates) {
  const GroupShape group = among(shape, cluster);
  if (group.ranks <= 1) return 0;
  if (cluster.intra_node_bandwidth <= 0 && group.nodes == 1) return 0;
  const auto payload = static_cast<double>(event.bytes);
  const double call =
      rates.seconds + rates.node_seconds * hops_between_nodes(event.collective, group.nodes);
  const Rates reached{
      cluster.intra_node_bandwidth * cluster.intra_node_share.value_or(rates.node),
      cluster.inter_node_bandwidth * cluster.inter_node_share.value_or(rates.network)};
  double moving = seconds_of(busiest_links(event.collective, payload, group), reached);
  if (reduced_in_switch(event.collective, group, cluster))
    moving = std::min(
        moving, static_cast<double>(bytes_sent(Collective::all_reduce, event.bytes, group.ranks)) /
                    *cluster.switch_all_reduce);
  return rates.slowdown * (moving + call * static_cast<double>(event.count));
}

double ideal_collective_seconds(const Event& event, const GroupShape& shape,
                                const Cluster& cluster) {
  const GroupShape group = among(shape, cluster);
  const auto payload = static_cast<double>(event.bytes);
  LinkBytes bytes = busiest_links(event.collective, payload, group);
  if (reduced_in_switch(event.collective, group, cluster)) bytes.port = payload;
  return seconds_of(bytes, {cluster.intra_node_bandwidth, cluster.inter_node_bandwidth});
}

namespace {

/// All GPUs of a node copy at the same time, and those of a socket share its memory. A host has a
/// socket for every 4, as nodes of 8 are built.
double share_of_host_memory(const Cluster& cluster, const LinkRates& rates) {
  constexpr std::int64_t kGpusOfASocket = 4;
  const std::int64_t sockets = ceil_div(cluster.gpus_per_node, kGpusOfASocket);
  return rates.host_memory * static_cast<double>(sockets) /
         static_cast<double>(cluster.gpus_per_node);
}

}  // namespace

double copy_seconds(const Event& event, const Cluster& cluster, const LinkRates& rates) {
  const auto bytes = static_cast<double>(event.bytes);
  if (event.link == LinkKind::nvme) {
    constexpr double kOneDrive = 5e9;  // generation 4
    const auto& nvme = cluster.nvme;
    const auto rate = !nvme             ? std::nullopt
                      : event.to_device ? nvme->read_bandwidth
                                        : nvme->write_bandwidth;
    return rates.drives * bytes * static_cast<double>(cluster.gpus_per_node) /
           rate.value_or(kOneDrive);
  }
  return bytes / std::min(cluster.gpu.pcie_bandwidth.value_or(kAssumedPcie) * rates.host,
                          share_of_host_memory(cluster, rates));
}

}  // namespace shardplan
