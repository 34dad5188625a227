// A cluster as a job writes it, with everything that is known about it.
#pragma once

#include "hardware/cluster.h"
#include "json/document.h"

namespace shardplan {

/// The object of load/cluster.h. A GPU of the catalogue keeps its name; with `own_gpu` its figures
/// are written out, so that they can be changed.
Json cluster_json(const Cluster& cluster, bool own_gpu);

}  // namespace shardplan
