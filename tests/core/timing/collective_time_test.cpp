// No link carries more than its rate: collectives are written out as messages between the GPUs of a
// group, rank by rank, and what they put on each port and adapter is set against the time.
#include "timing/collective_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace shardplan::collective_time_test {
namespace {

constexpr double kPort = 450e9, kAdapter = 50e9;
constexpr std::int64_t kPayload = 1'680'000'000;

/// GPU `number` of `node`; the adapter with a GPU's number is its own.
struct Place {
  std::int64_t node = 0, number = 0;
};

/// Bytes out and in, by GPU, of its port and of its adapter.
class Links {
 public:
  explicit Links(const GroupShape& group) : group_(group) {
    for (auto* side : {&port_out_, &port_in_, &adapter_out_, &adapter_in_})
      side->assign(static_cast<std::size_t>(group.ranks), 0);
  }

  Place place(std::int64_t rank) const { return {rank / near(), rank % near()}; }
  std::int64_t near() const { return group_.ranks / group_.nodes; }

  /// Within a node over the ports; else by the sender's neighbour on the receiver's rail.
  void rail(std::int64_t from, std::int64_t to, double bytes) {
    const Place a = place(from), b = place(to);
    if (a.node == b.node) return within(from, to, bytes);
    const std::int64_t neighbour = a.node * near() + b.number;
    if (neighbour != from) within(from, neighbour, bytes);
    between(neighbour, to, bytes);
  }
  void within(std::int64_t from, std::int64_t to, double bytes) {
    port_out_[static_cast<std::size_t>(from)] += bytes;
    port_in_[static_cast<std::size_t>(to)] += bytes;
  }
  void between(std::int64_t from, std::int64_t to, double bytes) {
    adapter_out_[static_cast<std::size_t>(from)] += bytes;
    adapter_in_[static_cast<std::size_t>(to)] += bytes;
  }
  /// To the next rank of a ring.
  void direct(std::int64_t from, std::int64_t to, double bytes) {
    place(from).node == place(to).node ? within(from, to, bytes) : between(from, to, bytes);
  }

  double port() const { return most(port_out_, port_in_); }
  double adapter() const { return most(adapter_out_, adapter_in_); }

 private:
  static double most(const std::vector<double>& a, const std::vector<double>& b) {
    return std::max(*std::max_element(a.begin(), a.end()), *std::max_element(b.begin(), b.end()));
  }

  GroupShape group_;
  std::vector<double> port_out_, port_in_, adapter_out_, adapter_in_;
};

/// As many rings as a node has GPUs in the group: ring r leaves each node by GPU r and enters the
/// next by GPU r + 1, so that every adapter and every port is used alike.
void add_rings(Links& links, const GroupShape& group, double bytes_each_sends) {
  const std::int64_t near = links.near();
  for (std::int64_t r = 0; r < near; ++r) {
    std::vector<std::int64_t> order;
    for (std::int64_t node = 0; node < group.nodes; ++node)
      for (std::int64_t k = 1; k <= near; ++k) order.push_back(node * near + (r + k) % near);
    for (std::size_t i = 0; i < order.size(); ++i)
      links.direct(order[i], order[(i + 1) % order.size()],
                   bytes_each_sends / static_cast<double>(near));
  }
}

Links messages_of(Collective collective, const GroupShape& group) {
  Links links(group);
  const auto payload = static_cast<double>(kPayload);
  const auto ranks = static_cast<double>(group.ranks);
  switch (collective) {
    case Collective::all_to_all:
      for (std::int64_t a = 0; a < group.ranks; ++a)
        for (std::int64_t b = 0; b < group.ranks; ++b)
          if (a != b) links.rail(a, b, payload / ranks);
      break;
    case Collective::ring:
      for (std::int64_t turn = 1; turn < group.ranks; ++turn)
        for (std::int64_t a = 0; a < group.ranks; ++a)
          links.direct(a, (a + 1) % group.ranks, payload);
      break;
    case Collective::send:
      links.direct(links.near() - 1, links.near() % group.ranks, payload);
      break;
    default:
      add_rings(links, group,
                payload * (ranks - 1) / ranks * (collective == Collective::all_reduce ? 2 : 1));
  }
  return links;
}

Cluster cluster_of(const GroupShape& group) {
  Cluster c;
  c.gpus_per_node = 8;
  c.nodes = group.nodes;
  c.intra_node_bandwidth = kPort;
  c.inter_node_bandwidth = kAdapter;
  return c;
}

Event event_of(Collective collective) {
  Event e;
  e.kind = Event::Kind::collective;
  e.collective = collective;
  e.bytes = kPayload;
  return e;
}

constexpr Collective kAll[] = {Collective::all_reduce, Collective::reduce_scatter,
                               Collective::all_gather, Collective::broadcast,
                               Collective::all_to_all, Collective::send,
                               Collective::ring};
constexpr GroupShape kShapes[] = {{2, 1}, {4, 1},  {5, 1},  {8, 1},  {2, 2},
                                  {4, 2}, {8, 2},  {16, 2}, {4, 4},  {32, 4},
                                  {8, 8}, {16, 8}, {64, 8}, {48, 6}, {128, 16}};

std::string name(Collective collective, const GroupShape& group) {
  return "collective " + std::to_string(static_cast<int>(collective)) + " among " +
         std::to_string(group.ranks) + " ranks on " + std::to_string(group.nodes) + " nodes";
}

TEST(CollectiveTime, NoLinkCarriesMoreThanItsRate) {
  for (const Collective collective : kAll)
    for (const GroupShape& group : kShapes) {
      const Links links = messages_of(collective, group);
      const Event e = event_of(collective);
      const double ideal = ideal_collective_seconds(e, group, cluster_of(group));
      EXPECT_LE(links.port(), ideal * kPort * 1.0001) << name(collective, group);
      EXPECT_LE(links.adapter(), ideal * kAdapter * 1.0001) << name(collective, group);
      EXPECT_LE(ideal, collective_seconds(e, group, cluster_of(group), {}))
          << name(collective, group);
    }
}

TEST(CollectiveTime, TheBusiestLinkIsFull) {
  for (const Collective collective : kAll)
    for (const GroupShape& group : kShapes) {
      const Links links = messages_of(collective, group);
      const double ideal = ideal_collective_seconds(event_of(collective), group, cluster_of(group));
      const double needed = std::max(links.port() / kPort, links.adapter() / kAdapter);
      EXPECT_NEAR(ideal, needed, 1e-3 * needed) << name(collective, group);
    }
}

/// Of the whole group, what leaves its nodes is what all adapters send.
TEST(CollectiveTime, TrafficBetweenNodesIsWhatAdaptersSend) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::all_to_all})
    for (const GroupShape& group : kShapes) {
      if (group.nodes == 1) continue;
      const auto bytes = static_cast<double>(bytes_between_nodes(collective, kPayload, group));
      EXPECT_NEAR(bytes, messages_of(collective, group).adapter(), 1e-6 * bytes + 64)
          << name(collective, group);
    }
}

/// A GPU that sends to GPUs of other nodes has one adapter, however many its node has.
TEST(CollectiveTime, AnAllToAllBetweenNodesHasOneAdapterAGpu) {
  const GroupShape group{64, 8};
  const double seconds =
      ideal_collective_seconds(event_of(Collective::all_to_all), group, cluster_of(group));
  EXPECT_NEAR(seconds, kPayload * 56.0 / 64 / kAdapter, 1e-9);
}

/// In the switch each GPU sends its part once, and no port is overrun by it.
TEST(CollectiveTime, AnAllReduceInTheSwitchIsFasterThanARing) {
  const GroupShape group{8, 1};
  Cluster c = cluster_of(group);
  const Event e = event_of(Collective::all_reduce);
  const double ring = collective_seconds(e, group, c, {});
  c.switch_all_reduce = 476e9;
  const double reduced = collective_seconds(e, group, c, {});
  EXPECT_LT(reduced, 0.8 * ring);
  EXPECT_GT(reduced, static_cast<double>(kPayload) / kPort);
  EXPECT_LE(ideal_collective_seconds(e, group, c), reduced);
  EXPECT_EQ(collective_seconds(e, {4, 1}, c, {}),
            collective_seconds(e, {4, 1}, cluster_of(group), {}));
}

TEST(CollectiveTime, EachHopBetweenNodesTakesItsTime) {
  LinkRates rates;
  Event e = event_of(Collective::all_gather);
  e.bytes = 64;  // only calls take time
  const auto seconds = [&](Collective collective, std::int64_t nodes) {
    e.collective = collective;
    return collective_seconds(e, {nodes, nodes}, cluster_of({nodes, nodes}), rates) - rates.seconds;
  };
  EXPECT_NEAR(seconds(Collective::all_gather, 64), 63 * rates.node_seconds, 1e-7);
  EXPECT_NEAR(seconds(Collective::all_reduce, 64), 12 * rates.node_seconds, 1e-7);
  EXPECT_NEAR(seconds(Collective::send, 64), rates.node_seconds, 1e-7);
}

/// 4 GPUs and more share the memory of their socket; 1 and 2 do not fill it.
TEST(CopyTime, GpusOfASocketShareItsMemory) {
  LinkRates rates;
  rates.host = 1;
  rates.host_memory = 120e9;
  Event e;
  e.kind = Event::Kind::copy;
  e.bytes = kPayload;
  const auto rate = [&](std::int64_t gpus, double pcie) {
    Cluster c = cluster_of({gpus, 1});
    c.gpus_per_node = gpus;
    c.gpu.pcie_bandwidth = pcie;
    return static_cast<double>(kPayload) / copy_seconds(e, c, rates);
  };
  EXPECT_DOUBLE_EQ(rate(1, 60e9), 60e9);
  EXPECT_DOUBLE_EQ(rate(2, 60e9), 60e9);
  EXPECT_DOUBLE_EQ(rate(4, 60e9), 30e9);
  EXPECT_DOUBLE_EQ(rate(8, 60e9), 30e9) << "two sockets";
  EXPECT_DOUBLE_EQ(rate(4, 15e9), 15e9) << "slower links share nothing";
}

}  // namespace
}  // namespace shardplan::collective_time_test
