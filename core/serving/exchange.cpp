#include "serving/exchange.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "timing/collective_time.h"

namespace shardplan {
namespace {

/// A way in which a library moves a message around a ring: a call, each step from a GPU to the
/// next, and the share of the links that data reach beside their flags.
struct Protocol {
  double call = 0, step = 0;
  double share = 1;
};
using Protocols = std::array<Protocol, 3>;  ///< LL, LL128, Simple

struct Library {
  std::string_view name;  ///< GpuAbilities::collectives
  Protocols linked, bus;  ///< GPUs joined by their own links, or by PCIe
};

/// What the libraries themselves choose by: baseLat, hwLat and the model's refinements, ring,
/// all-reduce (NCCL 01afd20, RCCL 0023b9b, src/graph/tuning.cc).
constexpr Library kNccl{"NCCL",
                        {{{3.6e-6, 0.47e-6, 0.25}, {10e-6, 1.9e-6, 0.92}, {8.4e-6, 3.4e-6, 1}}},
                        {{{3.6e-6, 1.0e-6, 0.25}, {10e-6, 2.5e-6, 0.92}, {8.4e-6, 5.7e-6, 1}}}};
constexpr Library kRccl{"RCCL",
                        {{{20.5e-6, 2.3e-6, 0.2}, {20.5e-6, 2.3e-6, 0.2}, {27.9e-6, 2.7e-6, 1}}},
                        {{{20.5e-6, 1.3e-6, 0.2}, {20.5e-6, 1.3e-6, 0.2}, {27.9e-6, 1.9e-6, 1}}}};

/// Others are assumed to be as NCCL.
const Library& library_of(std::string_view name) {
  return name == kRccl.name ? kRccl : kNccl;
}

/// Of GPUs on PCIe four are at a socket, as nodes of eight are built. A ring of more goes from one
/// socket to the other, whose link NCCL reckons at 16 GB/s of AMD's, and 22 of Intel's since
/// Sapphire Rapids (src/graph/topo.h, AMD_BW, SRP_QPI_BW), where cards of PCIe 5 are assumed to be.
double slower_between_sockets(const GroupShape& group, const Cluster& cluster,
                              const LinkRates& links) {
  constexpr std::int64_t kGpusOfASocket = 4;
  constexpr double kBetweenSockets = 16e9, kBetweenNewer = 22e9;
  constexpr double kFifth = 60e9;  // of a port of PCIe 5 with sixteen lanes
  if (cluster.gpu.nvlink_bandwidth || group.nodes > 1 || group.ranks <= kGpusOfASocket) return 1;
  const double port = cluster.intra_node_bandwidth * cluster.intra_node_share.value_or(links.node);
  const double between = cluster.intra_node_bandwidth > kFifth ? kBetweenNewer : kBetweenSockets;
  return std::max(1.0, port / between);
}

}  // namespace

double engine_exchange_seconds(const Event& event, const GroupShape& group, const Cluster& cluster,
                               const LinkRates& links, const EngineDescription& engine) {
  LinkRates alone = links;
  alone.seconds = 0;
  const double moving = collective_seconds(event, group, cluster, alone) *
                        slower_between_sockets(group, cluster, links);
  const auto calls = static_cast<double>(event.count);
  const double steps = (event.collective == Collective::all_reduce ? 2.0 : 1.0) *
                       static_cast<double>(group.ranks - 1);
  const bool linked = cluster.gpu.nvlink_bandwidth.has_value();
  const OwnExchange& own = engine.own_exchange;
  if (event.bytes / std::max<std::int64_t>(event.count, 1) <= own.most_bytes && linked)
    return own.slowdown * moving +
           calls * (own.seconds + static_cast<double>(group.ranks) * own.gpu_seconds +
                    steps * engine.exchange_step_seconds);
  const Library& library = library_of(cluster.gpu.abilities.collectives);
  double least = 0;
  for (const Protocol& p : linked ? library.linked : library.bus) {
    const double seconds =
        calls * (p.call + steps * (p.step + engine.exchange_step_seconds)) + moving / p.share;
    if (least == 0 || seconds < least) least = seconds;
  }
  return links.slowdown * least;
}

}  // namespace shardplan
