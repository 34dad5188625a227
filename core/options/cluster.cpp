// What a job can say of a cluster beside its name. load/cluster.h reads them: each changes what the
// catalogue says.
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr Option<Cluster> beside(OptionInfo info) {
  return special<Cluster>(info);
}

constexpr std::array kClusterOptions{
    beside({.key = "name",
            .help = "any of the names above, in place of gpu, with what else is known beside it"}),
    beside({.key = "gpu",
            .help = "a GPU's name, or an object with memory_bytes and what else is known",
            .doc = "a GPU's name, or an object with `memory_bytes` and what else is known: "
                   "`usable_bytes`, `arch`, `compute_capability`, `memory_bandwidth`, "
                   "`peak_flops`, `nvlink_bandwidth`, `pcie_bandwidth`, and what its units and "
                   "libraries are like: `vendor`, `runtime` (CUDA, ROCm), `collectives` (NCCL, "
                   "RCCL), `product_alignment_bytes`, `unaligned_batched_products`, `fp32_lanes`, "
                   "`issue_lanes`, `blas_workspace_bytes`, `transformer_engine_workspace_bytes`, "
                   "`host_memory_gbs`; "
                   "what is left open is that of the catalogue's GPU of this "
                   "`compute_capability` or `arch`, else of the likest, and said to be assumed",
            .required = true}),
    beside({.key = "gpus_per_node", .help = "GPUs in a node", .default_text = "1"}),
    beside({.key = "nodes", .help = "nodes", .default_text = "1"}),
    beside({.key = "host_memory_bytes",
            .flag = "--host-memory-bytes",
            .also = "--host-memory --ram --cpu-memory",
            .help = "host memory of a node",
            .default_text = "unknown: no verdict on the host",
            .kind = OptionKind::integer,
            .integers = {.least = 1},
            .magnitude = Magnitude::bytes}),
    beside({.key = "nvme.bytes",
            .flag = "--nvme-bytes",
            .also = "--nvme",
            .help = "NVMe of a node",
            .default_text = "unknown",
            .kind = OptionKind::integer,
            .integers = {.least = 0},
            .magnitude = Magnitude::bytes}),
    beside({.key = "nvme.read_bandwidth",
            .help = "of the NVMe of a node",
            .unit = "bytes/s",
            .default_text = "unknown"}),
    beside({.key = "nvme.write_bandwidth",
            .help = "of the NVMe of a node",
            .unit = "bytes/s",
            .default_text = "unknown"}),
    beside({.key = "interconnect",
            .help = "a link's name, or intra_node_bandwidth and inter_node_bandwidth",
            .doc = "a link's name, or `intra_node_bandwidth` and `inter_node_bandwidth` (a name "
                   "or bytes/s)",
            .default_text = "what such GPUs usually have"}),
    beside({.key = "price_per_hour",
            .flag = "--price",
            .also = "--price-per-hour --price-per-node-hour",
            .help = "what a node costs an hour, on demand",
            .default_text = "the catalogue's list price of such a machine",
            .kind = OptionKind::number,
            .numbers = {.least = 0, .most = 1e9}}),
    beside({.key = "spot_price_per_hour",
            .flag = "--spot-price",
            .also = "--spot-price-per-hour",
            .help = "what a node costs an hour where it may be taken away",
            .default_text = "the list price, where it is known and price_per_hour is not said",
            .kind = OptionKind::number,
            .numbers = {.least = 0, .most = 1e9}}),
    beside({.key = "storage.read_bandwidth",
            .flag = "--storage-read-bandwidth",
            .help = "of where checkpoints are, of one node",
            .unit = "bytes/s",
            .default_text = "the NVMe's, else that of a published cluster",
            .kind = OptionKind::number,
            .numbers = {.least = 1, .most = 1e18},
            .magnitude = Magnitude::bytes}),
    beside({.key = "storage.write_bandwidth",
            .flag = "--storage-write-bandwidth",
            .help = "of where checkpoints go, of one node",
            .unit = "bytes/s",
            .default_text = "the NVMe's, else that of a published cluster",
            .kind = OptionKind::number,
            .numbers = {.least = 1, .most = 1e18},
            .magnitude = Magnitude::bytes}),
    beside({.key = "hours_between_failures",
            .flag = "--hours-between-failures",
            .also = "--mtbf --mtbf-hours",
            .help = "the mean that a node goes without stopping the run",
            .default_text = "as counted for Llama 3 405B: 45,566 hours of a GPU",
            .kind = OptionKind::number,
            .numbers = {.least = 1e-3, .most = 1e9}}),
    beside({.key = "restart_seconds",
            .flag = "--restart-seconds",
            .help = "from a failure until the run loads its checkpoint",
            .unit = "s",
            .default_text = "600",
            .kind = OptionKind::number,
            .numbers = {.least = 0, .most = 1e7}}),
    beside({.key = "label", .help = "how to call it", .default_text = "as it was named"}),
};

}  // namespace

const OptionTable<Cluster>& cluster_option_table() {
  static constexpr OptionTable<Cluster> kTable{"cluster", "", kClusterOptions};
  return kTable;
}

}  // namespace shardplan
