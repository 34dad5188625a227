// What is known about GPUs, links, storage, hosts and machines, as plain data. io/load/hardware.h
// fills it from data/hardware; rates are SI (bytes/s, FLOP/s, seconds), one direction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/cluster.h"

namespace shardplan {

/// What the GPUs of an architecture have in common; a GPU may state its own in its place.
struct Architecture {
  std::string name, vendor;
  GpuAbilities abilities;            ///< complete: what the row leaves open is that of `like`
  std::vector<std::string> assumed;  ///< keys of what it leaves open
  std::string like;                  ///< the architecture that they are taken from
  std::vector<std::string> sources, unverified;
  std::string note;
};

struct CatalogGpu {
  Gpu gpu;
  std::string family;                         ///< "A100"
  std::string form;                           ///< "SXM4", "PCIe"; "" when there is only one
  std::vector<std::string> aliases;           ///< other names of the family, or of this very part
  std::int64_t memory_gb = 0;                 ///< as it is sold
  std::vector<std::int64_t> other_memory_gb;  ///< sold under these sizes too
  bool rare = false;                          ///< never meant by a name that other parts share
  std::vector<std::string> sources;
};

/// `ethernet`: within a node; `network`: between nodes.
enum class Medium : std::uint8_t { nvlink, xgmi, c2c, pcie, network, ethernet };
enum class LinkShare : std::uint8_t { gpu, port, node };  ///< what owns one link's bandwidth

struct Link {
  std::string name;  ///< "NVLink4"
  Medium medium = Medium::network;
  LinkShare per = LinkShare::port;
  double bandwidth = 0;                     ///< nominal
  std::optional<double> effective;          ///< what collectives reach
  std::optional<double> switch_all_reduce;  ///< what an all-reduce in the switch reaches (busbw)
  std::optional<double> latency;            ///< seconds
  std::string source;
  std::vector<std::string> unverified;
  std::string note;
};

/// The network that is assumed between nodes when nothing is known. `arch` is "" in the last row,
/// for GPUs without an NVLink or xGMI fabric.
struct DefaultNetwork {
  std::string arch;
  std::string link;
  std::optional<double> ports_per_gpu, ports_per_node;  ///< exactly one is there
  std::string source;
};

/// Constants of NCCL's own cost model, seconds: latency of a step by algorithm and protocol.
struct ProtocolLatency {
  double ll = 0, ll128 = 0, simple = 0;
};
struct NcclLatency {
  ProtocolLatency tree, ring;
  std::optional<double> nvls, nvls_tree, pat;
};
struct NcclConstants {
  NcclLatency base, nvlink_hop, pcie_hop, network_hop;
  std::vector<std::pair<std::string, double>> efficiency;          ///< fraction of the bandwidth
  std::vector<std::pair<std::string, double>> bandwidth_per_link;  ///< bytes/s
  std::string source;
};

struct Storage {
  std::string name;
  std::optional<double> read_bandwidth, write_bandwidth;  ///< per node
  std::string source;
  std::vector<std::string> unverified;
  std::string note;
};

struct Instance {
  std::string provider;
  std::string name;  ///< "p4d.24xlarge"
  std::vector<std::string> aliases;
  std::string gpu;  ///< CatalogGpu's name
  std::int64_t gpus = 1;
  std::optional<std::int64_t> vcpus;
  std::optional<Bytes> host_memory;
  std::optional<Bytes> nvme;          ///< zero: has none
  std::string storage;                ///< Storage's name, "" when its rate is unknown
  std::optional<double> network;      ///< of the whole node
  std::optional<double> gpu_network;  ///< the part the GPUs use, where it is less
  std::optional<ListPrice> price;
  std::string source;
  std::vector<std::string> unverified;
  std::string note;
};

struct CpuAdamRate {
  std::string name;
  double parameters_per_second = 0;
  std::string source;
  std::vector<std::string> unverified;
  std::string note;
};

/// Interruptions that somebody counted on a cluster.
struct CountedFailures {
  std::string name;
  double gpu_hours = 0;  ///< between two of them
  std::string source;
  std::vector<std::string> unverified;
  std::string note;
};

/// A range that others report; shown beside a prediction, not used in it.
struct ReportedRange {
  std::string name, unit, source;
  double least = 0, most = 0;
  std::optional<double> typical;
};

struct HardwareCatalog {
  std::vector<Architecture> architectures;
  std::vector<CatalogGpu> gpus;
  std::vector<Link> links;
  std::vector<DefaultNetwork> default_networks;
  NcclConstants nccl;
  std::vector<Instance> instances;
  std::vector<Storage> storage;
  std::string shared_storage;             ///< the row for clusters of which nothing is known
  std::vector<CountedFailures> failures;  ///< the first is taken where a job says nothing
  double restart_seconds = 0;
  std::vector<CpuAdamRate> cpu_adam;
  double dram_bytes_per_adam_parameter = 0;
  std::vector<ReportedRange> reported_overheads;
};

// By name, without regard to case, '-', '_', '.' and spaces; nullptr when there is none.
const CatalogGpu* find_gpu(const HardwareCatalog& catalog, std::string_view name);
const Link* find_link(const HardwareCatalog& catalog, std::string_view name);
const Instance* find_instance(const HardwareCatalog& catalog, std::string_view name_or_alias);
const Storage* find_storage(const HardwareCatalog& catalog, std::string_view name);

/// Usable bytes over marketing GiB: the median of the GPUs whose usable memory was read from a
/// card. 0.99 today, from 0.91 (GDDR with ECC) to 1.
double typical_usable_ratio(const HardwareCatalog& catalog);

/// What a process can probably allocate on a GPU sold with `memory_gb`.
Bytes typical_usable(const HardwareCatalog& catalog, std::int64_t memory_gb);

bool is_unverified(const std::vector<std::string>& unverified, std::string_view field);

}  // namespace shardplan
