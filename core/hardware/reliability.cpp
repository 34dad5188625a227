#include "hardware/reliability.h"

namespace shardplan {
namespace {

CheckpointStorage storage_of(const Cluster& cluster, const Storage& shared) {
  if (cluster.nvme && cluster.nvme->read_bandwidth && cluster.nvme->write_bandwidth)
    return {*cluster.nvme->read_bandwidth, *cluster.nvme->write_bandwidth, "NVMe of the node",
            Source::measured};
  return {shared.read_bandwidth.value_or(0), shared.write_bandwidth.value_or(0), shared.name,
          Source::assumed};
}

}  // namespace

void fill_reliability(Cluster& cluster, const HardwareCatalog& catalog) {
  const Storage* shared = find_storage(catalog, catalog.shared_storage);
  if (!cluster.checkpoint_storage && shared != nullptr)
    cluster.checkpoint_storage = storage_of(cluster, *shared);
  if (cluster.failures || catalog.failures.empty()) return;
  const CountedFailures& counted = catalog.failures.front();
  cluster.failures = Failures{counted.gpu_hours / static_cast<double>(cluster.gpus_per_node),
                              catalog.restart_seconds, counted.name};
}

}  // namespace shardplan
