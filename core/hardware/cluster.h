// The machines a job runs on, as plain data. Bandwidths are bytes per second and one direction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/source.h"

namespace shardplan {

/// Dense peak rates in FLOP/s; nullopt where the chip has no such unit.
struct PeakFlops {
  std::optional<double> fp32, tf32, bf16, fp16, fp8;
};

struct Gpu {
  std::string name;      ///< "A100-SXM4-40GB"
  std::string arch;      ///< "Ampere"
  std::string compute_capability;  ///< "8.0"
  Bytes capacity;        ///< what nvidia-smi lists as total
  Bytes usable;          ///< what a process can allocate: cudaMemGetInfo's total
  Source usable_source = Source::measured;  ///< assumed where the catalogue marks it unverified
  std::optional<double> memory_bandwidth;
  PeakFlops peak;
  std::optional<double> nvlink_bandwidth;  ///< absent: no NVLink
  std::optional<double> pcie_bandwidth;
  std::optional<double> tdp_watts;
  std::vector<std::string> unverified;  ///< catalogue fields that no source confirms
};

struct Nvme {
  Bytes capacity;
  std::optional<double> read_bandwidth, write_bandwidth;  ///< per node
};

struct Cluster {
  std::string label;  ///< as the user named it: "4xA100-40GB"
  Gpu gpu;
  std::int64_t gpus_per_node = 1;
  std::int64_t nodes = 1;
  std::optional<Bytes> host_memory;  ///< per node; absent: unknown, no host verdict
  std::optional<Nvme> nvme;          ///< per node
  double intra_node_bandwidth = 0;   ///< between two GPUs of a node (NVLink or PCIe)
  double inter_node_bandwidth = 0;   ///< per GPU, between nodes
  Source interconnect_source = Source::assumed;
  std::optional<double> price_per_hour;  ///< of one node
  std::vector<std::string> notes;        ///< what was assumed while resolving the name

  std::int64_t world() const { return checked_mul(gpus_per_node, nodes); }
};

}  // namespace shardplan
