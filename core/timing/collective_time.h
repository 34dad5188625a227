// Seconds that collectives and copies take, from what each sends over the links of the group's
// GPUs. docs/explanation/time.md, "Links".
#pragma once

#include <cstdint>

#include "hardware/cluster.h"
#include "program/program.h"
#include "timing/rates.h"

namespace shardplan {

/// Bytes per step that one GPU sends for a collective of `payload` bytes among `ranks`, with ring
/// algorithms: docs/explanation/memory.md, section "Traffic". A ring's payload goes on to every
/// other rank.
std::int64_t bytes_sent(Collective collective, std::int64_t payload, std::int64_t ranks);

/// Of them one GPU's share of what leaves its node: a ring crosses to the next node once for all of
/// the group's GPUs there; in an all-to-all each sends its own to every GPU elsewhere.
std::int64_t bytes_between_nodes(Collective collective, std::int64_t payload,
                                 const GroupShape& group);

/// Bytes, one direction, over the busiest of a group's links.
struct LinkBytes {
  double port = 0;     ///< of a GPU: NVLink, xGMI or PCIe, within a node
  double adapter = 0;  ///< of a GPU's share of its node's network adapters
};
/// Rings (all-reduce, reduce-scatter, all-gather, broadcast) cross to the next node over the
/// adapters of all GPUs that the group has in a node; a message of an all-to-all goes over one
/// adapter, and before it to the neighbour on its receiver's rail; neighbours that send to each
/// other, in pipelines or a ring of keys and values, have one adapter each.
LinkBytes busiest_links(Collective collective, double payload, const GroupShape& group);

/// NCCL reduces in the switch from five GPUs of a node on (NVLS; seen on H200).
inline constexpr std::int64_t kLeastRanksOfSwitch = 5;

/// Of all `event.count` calls together; `shape` is that of the event's group (Program::groups).
double collective_seconds(const Event& event, const GroupShape& shape, const Cluster& cluster,
                          const LinkRates& rates);

/// Host and NVMe copies of one GPU while all GPUs of its node copy.
double copy_seconds(const Event& event, const Cluster& cluster, const LinkRates& rates);

/// What the links' own rates allow, for bounds.
double ideal_collective_seconds(const Event& event, const GroupShape& shape,
                                const Cluster& cluster);

}  // namespace shardplan
