#include "estimate/nccl_memory.h"

#include <algorithm>

namespace shardplan {
namespace {

// NCCL 2.28.9. Every allocation is rounded up to the 2 MiB of cuMemCreate's pages (alloc.h
// ncclCuMemAlloc), so the small ones count as much.
constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kPage = 2048 * kKiB;

constexpr std::int64_t pages(std::int64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// init.cc devCommSetup: the communicator itself and its table of local ranks.
constexpr std::int64_t kCommunicator = 2 * kPage;
// channel.cc initChannel: the peers that groups share, this group's, the ring's ranks.
constexpr std::int64_t kChannel = 3 * kPage;
// transport/p2p.cc p2pSendSetup: flags. From compute capability 9.0 on NVLink writes, so the data
// is with the receiver: flags and the buffers of three protocols (init.cc computeBuffSizes):
// LL 8 lines · 512 threads · 8 steps · 16 B, LL128 120 · 640 · 8 · 8 B, Simple 4 MiB.
constexpr std::int64_t kSend = kPage;
constexpr std::int64_t kReceive = pages(4 * kKiB + 512 * kKiB + 4800 * kKiB + 4096 * kKiB);
// Peers on several nodes: two channels each (graph/paths.cc ncclTopoGetNchannels), and buffers that
// all peers elsewhere share, for sends and for receives: 16 steps of 128 KiB a channel
// (transport/net.cc sharedBuffersInit). Read, not measured.
constexpr std::int64_t kNetworkChannels = 2;
constexpr std::int64_t kNetworkSteps = 16 * 128 * kKiB;

/// Channels of a send or receive come in powers of two, and are set up with the others.
std::int64_t set_up(const Communicator& c, const NcclOverhead& o) {
  return c.shape.ranks == 1 ? o.channels_alone : std::max(o.channels, o.channels_to_peer);
}

/// Every channel has one neighbour to send to, one to hear from. Between nodes small all-reduces
/// (barriers, norms) go over trees, which within a node are the way back.
std::int64_t rings_and_trees(const Communicator& c, const NcclOverhead& o) {
  return (c.shape.nodes > 1 ? 2 : 1) * o.channels * (kSend + kReceive);
}

std::int64_t peers(const Communicator& c, const NcclOverhead& o) {
  const bool several = c.shape.nodes > 1;
  const std::int64_t in_node = c.shape.ranks / c.shape.nodes - 1;
  const std::int64_t most = several ? std::max<std::int64_t>(in_node, 2) : in_node;
  const std::int64_t channels = several ? kNetworkChannels : o.channels_to_peer;
  const std::int64_t shared = several ? 2 * o.channels_to_peer * kNetworkSteps : 0;
  return channels *
             (std::min(c.peers.sends, most) * kSend + std::min(c.peers.receives, most) * kReceive) +
         shared;
}

bool exchanges_with_peers(const Communicator& c) {
  return c.peers.sends + c.peers.receives > 0;
}

}  // namespace

std::int64_t communicator_bytes(const Communicator& c, const NcclOverhead& o) {
  if (o.channels == 0) return 0;
  std::int64_t bytes = kCommunicator + set_up(c, o) * kChannel;
  if (c.shape.ranks == 1) return bytes;
  if (c.collectives) bytes += rings_and_trees(c, o);
  if (exchanges_with_peers(c)) bytes += peers(c, o);
  return bytes;
}

std::int64_t nccl_bytes(const std::vector<Communicator>& list, const NcclOverhead& overhead) {
  if (list.empty() || overhead.channels == 0) return 0;
  std::int64_t bytes = overhead.modules_bytes;
  bool collectives = false, point_to_point = false;
  for (const Communicator& c : list) {
    bytes += communicator_bytes(c, overhead);
    collectives = collectives || (c.collectives && c.shape.ranks > 1);
    point_to_point = point_to_point || (exchanges_with_peers(c) && c.shape.ranks > 1);
  }
  return bytes + (collectives ? overhead.collective_bytes : 0) +
         (point_to_point ? overhead.point_to_point_bytes : 0);
}

std::int64_t nccl_bytes_at_most(const std::vector<Communicator>& list,
                                const NcclOverhead& overhead) {
  if (list.empty() || overhead.channels == 0 || list.front().shape.ranks == 1)
    return nccl_bytes(list, overhead);
  std::vector<Communicator> connected = list;
  Communicator& world = connected.front();
  world.collectives = true;
  world.peers = {world.shape.ranks - 1, world.shape.ranks - 1};
  return nccl_bytes(connected, overhead);
}

}  // namespace shardplan
