// The machines a job runs on, as plain data. Bandwidths are bytes per second and one direction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/source.h"
#include "base/units.h"
#include "formats/peak_rates.h"

namespace shardplan {

/// What the GPU's units and the libraries on it are like, beside rates: hardware/abilities.h names
/// the fields. What is here by default are those of Ada.
struct GpuAbilities {
  std::string runtime = "CUDA";      ///< whose context a process holds: "CUDA", "ROCm"
  std::string collectives = "NCCL";  ///< the library: "NCCL", "RCCL", "HCCL"
  /// Matrix units run products at full rate whose widths are multiples of so many bytes.
  std::int64_t product_alignment_bytes = 16;
  /// Products in a batch with other widths run on matrix units too.
  bool unaligned_batched_products = true;
  /// Of a multiprocessor: those that the datasheet's fp32 rate counts, and those that one clock's
  /// instructions can fill.
  std::int64_t fp32_lanes = 128, issue_lanes = 128;
  std::int64_t blas_workspace_bytes =
      8 * kMiB + 128 * kKiB;  ///< PyTorch's, of one handle and stream
  std::int64_t transformer_engine_workspace_bytes =
      4 * kMiB;  ///< Transformer Engine's, of one product
  /// GB/s of the memory in a node that is built around it, all sockets together.
  std::int64_t host_memory_gbs = 614;
};

/// Of a GPU whose number is not known.
inline constexpr std::int64_t kTypicalMultiprocessors = 108;

struct Gpu {
  std::string name;                ///< "A100-SXM4-40GB"
  std::string vendor;              ///< "NVIDIA"
  std::string arch;                ///< "Ampere"
  std::string compute_capability;  ///< NVIDIA's "8.0", AMD's "gfx942": compared, never taken apart
  GpuAbilities abilities;
  std::vector<std::string> assumed_abilities;  ///< keys of those that nothing states
  std::vector<std::string> stated_abilities;   ///< keys of those that the job states
  std::string abilities_like;                  ///< the architecture that they are assumed from
  std::optional<std::int64_t> multiprocessors;
  std::optional<std::int64_t> l2_cache_bytes;  ///< as the driver states it
  std::string memory_type;                     ///< "HBM2e"
  Bytes capacity;                              ///< what nvidia-smi lists as total
  Bytes usable;                             ///< what a process can allocate: cudaMemGetInfo's total
  Source usable_source = Source::measured;  ///< assumed where the catalogue marks it unverified
  std::optional<double> memory_bandwidth;
  PeakFlops peak;
  PeakFlops achievable;                    ///< best matrix product that somebody measured, FLOP/s
  std::optional<double> nvlink_bandwidth;  ///< NVLink or xGMI; absent: none
  bool nvlink_pairs_only = false;          ///< a bridge joins two cards and no more
  std::string nvlink_link;                 ///< its name in the catalogue of links
  std::optional<double> pcie_bandwidth;
  std::string pcie_link;
  std::optional<double> tdp_watts;
  /// With which the chip would hold the clock of its datasheet through one product after another.
  std::optional<double> full_watts;
  bool small_passes = false;            ///< vLLM gives it the passes of GPUs with less memory
  std::vector<std::string> unverified;  ///< catalogue fields that no source confirms
  std::string note;                     ///< what the catalogue says besides
};

/// Whether it has units for 16-bit products, but none for this format.
inline bool lacks(const Gpu& gpu, PeakRate format) {
  return gpu.peak[PeakRate::fp16] && !gpu.peak[format];
}

struct Nvme {
  Bytes capacity;                                         ///< zero: the node is known to have none
  std::optional<double> read_bandwidth, write_bandwidth;  ///< per node
};

/// What a machine costs an hour in US dollars, as its provider's list said on a day.
struct ListPrice {
  std::string provider, machine, region;  ///< "AWS", "p5.48xlarge", "us-east-1"
  std::string as_of;                      ///< "2026-07-20"
  double on_demand = 0;
  std::optional<double> spot;
  std::string source;
  /// GPUs of the machine, and how many of them the price was taken for: a part of a machine is
  /// priced at its share.
  std::int64_t gpus = 1, of_gpus = 1;
  double network = 0;        ///< of the machine per GPU, bytes/s; 0: not known
  bool same_machine = true;  ///< the cluster is made of it; else it only has the same GPUs
};

/// Where checkpoints go: bytes per second of one node.
struct CheckpointStorage {
  double read_bandwidth = 0, write_bandwidth = 0;
  std::string name;                 ///< of the catalogue's row, or whose it is
  Source source = Source::assumed;  ///< measured: the catalogue or the job says it of this cluster
  bool said = false;                ///< by the job
};

/// What stops runs: the mean of hours that a node goes without, and seconds until the run starts to
/// load its checkpoint.
struct Failures {
  double node_hours = 0, restart_seconds = 0;
  std::string counted_on;  ///< the cluster whose figures they are; "": the job says the hours
};

struct Cluster {
  std::string label;  ///< as the user named it: "4xA100-40GB"
  Gpu gpu;
  std::int64_t gpus_per_node = 1;
  std::int64_t nodes = 1;
  std::optional<Bytes> host_memory;  ///< per node; absent: unknown, no host verdict
  std::optional<Nvme> nvme;          ///< per node
  double intra_node_bandwidth = 0;   ///< nominal, between two GPUs of a node (NVLink or PCIe)
  double inter_node_bandwidth = 0;   ///< nominal, per GPU, between nodes
  /// Shares of these that collectives reach, where the links say; else what was fitted holds.
  std::optional<double> intra_node_share, inter_node_share;
  /// bytes/s at which the switch of a node reduces, as nccl-tests count (busbw); absent: it cannot.
  std::optional<double> switch_all_reduce;
  std::string intra_node_link;  ///< the catalogue's link, "" when only the rate is known
  std::string inter_node_link;
  /// measured: the catalogue or the user gives every rate that the job uses; assumed: one of them
  /// is a default or unverified.
  Source interconnect_source = Source::assumed;
  std::optional<double> price_per_hour;       ///< of one node, as the job says
  std::optional<double> spot_price_per_hour;  ///< the same, where it may be taken away
  std::optional<ListPrice> list_price;        ///< of one node
  std::optional<CheckpointStorage> checkpoint_storage;
  std::optional<Failures> failures;
  std::vector<std::string> notes;  ///< what was assumed while resolving the name

  std::int64_t world() const { return checked_mul(gpus_per_node, nodes); }
};

}  // namespace shardplan
