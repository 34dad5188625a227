// The links between GPUs, from the GPU, the machine or a default.
#pragma once

#include <optional>

#include "base/units.h"
#include "hardware/catalog.h"
#include "hardware/cluster.h"

namespace shardplan {

/// bytes/s of PCIe generation 4 with 16 lanes: for a GPU that names no link (links.json).
inline constexpr double kAssumedPcie = 31.5 * kGiga;

/// What is known of a cluster's links besides the GPU; nullopt is filled from the catalogue.
struct KnownInterconnect {
  std::optional<double> intra_node, inter_node;  ///< bytes/s of one GPU, one direction
  bool inter_node_unverified = false;
  std::string intra_node_link, inter_node_link;
};

/// Fills the bandwidths, the names of the links and their source, and notes what was assumed.
/// Within a node: NVLink if the GPU has it (bridges only for two GPUs), else PCIe. Between nodes:
/// HardwareCatalog::default_networks.
void fill_interconnect(Cluster& cluster, const KnownInterconnect& known,
                       const HardwareCatalog& catalog);

/// One GPU's share of a link, bytes/s: links of a node are shared by its GPUs, a port belongs to
/// one GPU.
double share_of_gpu(const Link& link, std::int64_t gpus_per_node);

}  // namespace shardplan
