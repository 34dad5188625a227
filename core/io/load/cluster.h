// The `cluster` of a job: a short text or an object.
//
//   "2x8xH100"
//   {"gpu": "A100-40GB", "gpus_per_node": 4, "nodes": 1, "host_memory_bytes": 549755813888,
//    "nvme": {"bytes": 7680000000000, "read_bandwidth": 6.5e9, "write_bandwidth": 5e9},
//    "interconnect": {"intra_node_bandwidth": 3e11, "inter_node_bandwidth": 2.5e10},
//    "storage": {"read_bandwidth": 2e9, "write_bandwidth": 1e9}, "hours_between_failures": 5000,
//    "restart_seconds": 600, "price_per_hour": 10.0, "spot_price_per_hour": 4.0, "label": "our
//    workstation"}
//   {"name": "4xA100-40GB", "host_memory_bytes": 549755813888}: the short text, and more
//
// `gpu` is a catalogue name, a memory size or an object of its own: {"name", "memory_bytes",
// "usable_bytes", "multiprocessors", "l2_cache_bytes", "memory_bandwidth", "peak_flops": {"bf16",
// ...}, "nvlink_bandwidth", "pcie_bandwidth", "tdp_watts", "arch", "compute_capability"}.
// Everything but memory_bytes may be left out. `interconnect` is a link of the catalogue
// ("InfiniBand-NDR-400") or an object whose two values are bytes per second of one GPU and one
// direction, or names of links.
#pragma once

#include <optional>
#include <string>

#include "hardware/catalog.h"
#include "hardware/cluster.h"
#include "json/document.h"
#include "json/reader.h"

namespace shardplan {

/// A text may also be the path of a file with such an object, as it stands or beside `file`.
/// `key_path` is the path of `value` in `file`, for errors; "" when the file is the cluster.
Cluster load_cluster(const Json& value, const std::string& file, const std::string& key_path,
                     const HardwareCatalog& catalog);

/// The member `nvme` of a cluster, or of what a record says of the machine that its step ran on.
std::optional<Nvme> read_nvme(ObjectReader& in);

}  // namespace shardplan
