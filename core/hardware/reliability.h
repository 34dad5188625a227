// Where a cluster's checkpoints go and how often its nodes fail, as far as nobody says.
#pragma once

#include "hardware/catalog.h"
#include "hardware/cluster.h"

namespace shardplan {

/// Local NVMe whose rates are known, else the storage of a cluster that published its own; its
/// failures by the GPUs of a node. What is there already stays.
void fill_reliability(Cluster& cluster, const HardwareCatalog& catalog);

}  // namespace shardplan
