// A cluster from the short text that users type.
//
//   cluster  = [count x] GPU              4xA100-40GB: one node of four; no count: one GPU
//            | count x count x GPU        2x8xH100: two nodes of eight
//            | [count x] instance         2xp4d.24xlarge: two machines
//   GPU      = a name (gpu_names.h), or a memory size for a GPU of no particular make: 40GB
//
// Case, spaces and hyphens do not count. Errors are InputError with key "cluster".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog.h"
#include "hardware/cluster.h"

namespace shardplan {

Cluster resolve_cluster(std::string_view text, const HardwareCatalog& catalog);

struct ResolvedGpu {
  Gpu gpu;
  std::vector<std::string> notes;
};

/// A catalogue name or a memory size ("40GB").
ResolvedGpu resolve_gpu(std::string_view name, const HardwareCatalog& catalog);

/// Throws when nodes times GPUs a node passes kMostGpus (cluster_text.h).
void check_world(std::int64_t nodes, std::int64_t gpus_per_node);

}  // namespace shardplan
