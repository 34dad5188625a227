#include "launch/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "comm/groups.h"
#include "comm/processes.h"
#include "comm/threads.h"
#include "device/errors.h"

namespace shardplan::validator {
namespace {

using namespace std::chrono_literals;

/// Every collective: each rank's element i is 10·rank + i.
void expect_collectives(Backend& backend, Communicator& c) {
  const int ranks = c.size();
  const auto tensor = [&](std::int64_t n) {
    const Tensor x{backend.allocate(n * 4), DType::f32, {n}};
    for (std::int64_t i = 0; i < n; ++i) x.as<float>()[i] = static_cast<float>(10 * c.rank() + i);
    return x;
  };
  const float ranks_sum = 10.0F * static_cast<float>(ranks * (ranks - 1)) / 2;
  const Tensor sum = tensor(5);  // no multiple of the ranks
  c.all_reduce(sum);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(sum.as<float>()[i], ranks_sum + static_cast<float>(ranks * i));
  const Tensor long_sum = tensor(200);  // in which every rank has a part to sum
  c.all_reduce(long_sum);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(long_sum.as<float>()[i], ranks_sum + static_cast<float>(ranks * i));

  const Tensor full = tensor(2 * ranks);
  const Tensor mine = full.slice(2 * c.rank(), 2);  // in place
  c.reduce_scatter(mine, full);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(mine.as<float>()[i], ranks_sum + static_cast<float>(ranks * (2 * c.rank() + i)));

  const Tensor all = tensor(2 * ranks);
  const Tensor part = tensor(2);
  c.all_gather(all, part);
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(all.as<float>()[2 * r + i], static_cast<float>(10 * r + i));

  // Two blocks of a part of three elements for each rank.
  const Tensor sent = tensor(2 * ranks * 3), received = tensor(2 * ranks * 3);
  c.connect_all();
  c.all_to_all(received, sent, 2);
  for (int b = 0; b < 2; ++b)
    for (int r = 0; r < ranks; ++r)
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(received.as<float>()[(b * ranks + r) * 3 + i],
                  static_cast<float>(10 * r + (b * ranks + c.rank()) * 3 + i));

  const Tensor told = tensor(3);
  c.broadcast(told, ranks - 1);
  EXPECT_EQ(told.as<float>()[2], static_cast<float>(10 * (ranks - 1) + 2));
  c.barrier();
}

void expect_collectives(const MakeRank& make, int ranks) {
  run_ranks(0, ranks, make,
            [&](RankDevice& device) { expect_collectives(*device.backend, *device.communicator); });
}

/// Each rank sends both neighbours in a ring two tensors that are too large for a socket's buffers,
/// and the next one a third; all at the same time.
void expect_exchange(const MakeRank& make, int ranks) {
  run_ranks(0, ranks, make, [&](RankDevice& device) {
    Communicator& c = *device.communicator;
    c.connect_neighbours();
    const int me = c.rank(), next = (me + 1) % ranks, previous = (me + ranks - 1) % ranks;
    constexpr std::int64_t kElements = std::int64_t{1} << 20;
    const auto tensor = [&](int value) {
      const Tensor x{device.backend->allocate(kElements * 4), DType::f32, {kElements}};
      std::fill_n(x.as<float>(), kElements, static_cast<float>(value));
      return x;
    };
    for (int round = 0; round < 3; ++round) {
      const std::vector<Parcel> out{{next, tensor(100 * me + 1)},
                                    {previous, tensor(100 * me + 2)},
                                    {next, tensor(100 * me + 3 + round)}};
      const std::vector<Parcel> in{
          {previous, tensor(-1)}, {previous, tensor(-1)}, {next, tensor(-1)}};
      const std::vector<Parcel> in_pair{{next, tensor(-1)}, {next, tensor(-1)}, {next, tensor(-1)}};
      const auto expect = [&](const Parcel& p, int value) {
        EXPECT_EQ(p.tensor.as<float>()[0], static_cast<float>(value));
        EXPECT_EQ(p.tensor.as<float>()[kElements - 1], static_cast<float>(value));
      };
      const auto& got = ranks == 2 ? in_pair : in;
      c.exchange(out, got);
      expect(got[0], 100 * previous + 1);
      expect(got[1], ranks == 2 ? 100 * next + 2 : 100 * previous + 3 + round);
      expect(got[2], ranks == 2 ? 100 * next + 3 + round : 100 * next + 2);
    }
    // Some have nothing to send, and take no part.
    const Tensor x = tensor(me);
    if (me == 0) c.exchange(std::vector<Parcel>{{next, x}}, {});
    if (me == 1) c.exchange({}, std::vector<Parcel>{{previous, x}});
    if (me == 1) {
      EXPECT_EQ(x.as<float>()[7], 0);
    }
    c.barrier();
  });
}

/// Of ranks that are `groups` groups: neighbours are in one, and those at the same place in each.
void expect_groups(const MakeRank& make, int ranks, int groups) {
  run_ranks(0, ranks, make, [&](RankDevice& device) {
    const int each = ranks / groups, rank = device.communicator->rank();
    const Groups made(*device.backend, *device.communicator, {.tensor = each});
    EXPECT_EQ(made.tensor().size(), each);
    EXPECT_EQ(made.tensor().rank(), rank % each);
    EXPECT_EQ(made.data().size(), groups);
    EXPECT_EQ(made.data().rank(), rank / each);
    for (Communicator* group : {&made.tensor(), &made.data()})
      expect_collectives(*device.backend, *group);
    device.communicator->barrier();
  });
}

TEST(ThreadRanks, collect_in_memory) {
  for (const int ranks : {1, 2, 4}) expect_collectives(host_ranks(ranks, 0), ranks);
}

TEST(ThreadRanks, exchange_with_their_neighbours) {
  for (const int ranks : {2, 3, 4, 5}) expect_exchange(host_ranks(ranks, 0), ranks);
}

TEST(ThreadRanks, collect_in_groups) {
  for (const int groups : {1, 2, 3, 6}) expect_groups(host_ranks(6, 0), 6, groups);
}

/// The same sockets that processes use, from threads.
MakeRank over_sockets(int ranks, int port) {
  return [=](int rank) {
    RankDevice device = host_ranks(1, 0)(0);
    device.communicator = make_process_communicator(
        std::make_unique<Star>("", port, rank, ranks, Patience{.start = 20s}));
    return device;
  };
}

TEST(ProcessRanks, collect_over_sockets) {
  expect_collectives(over_sockets(3, 29731), 3);
}

TEST(ProcessRanks, exchange_with_their_neighbours) {
  for (const int ranks : {2, 3, 4, 5}) expect_exchange(over_sockets(ranks, 29740 + ranks), ranks);
}

TEST(ProcessRanks, collect_in_groups) {
  expect_groups(over_sockets(4, 29733), 4, 2);
}

/// Stages are furthest apart, ranks that share layers nearest.
TEST(ThreadRanks, form_stages_and_pair_their_ends) {
  for (const int stages : {2, 3, 4}) {
    const int ranks = stages * 4;  // of each stage, two that share layers, twice
    run_ranks(0, ranks, host_ranks(ranks, 0), [&](RankDevice& device) {
      const int rank = device.communicator->rank(), stage = rank / 4;
      const Groups made(*device.backend, *device.communicator,
                        {.tensor = 2, .stages = stages, .tied_ends = true});
      EXPECT_EQ(made.tensor().rank(), rank % 2);
      EXPECT_EQ(made.data().rank(), rank / 2 % 2);
      EXPECT_EQ(made.stages().size(), stages);
      EXPECT_EQ(made.stages().rank(), stage);
      const bool end = stage == 0 || stage == stages - 1;
      EXPECT_EQ(made.ends().size(), end ? 2 : 1);
      float mine = static_cast<float>(stage == 0 ? 1 : 10);
      made.ends().all_reduce({reinterpret_cast<std::uintptr_t>(&mine), DType::f32, {1}});
      EXPECT_EQ(mine, end ? 11 : 10);
      device.communicator->barrier();
    });
  }
}

/// One rank dies while the others wait for what it should send.
void expect_all_end_with_a_stage(const MakeRank& make) {
  const auto start = std::chrono::steady_clock::now();
  try {
    run_ranks(0, 4, make, [](RankDevice& device) {
      const Groups groups(*device.backend, *device.communicator, {.stages = 4});
      const int stage = groups.stages().rank();
      if (stage == 1) throw std::runtime_error("stage 1 broke");
      const Tensor x{device.backend->allocate(4), DType::f32, {1}};
      std::vector<Parcel> in, out;
      if (stage > 0) in.push_back({stage - 1, x});
      if (stage < 3) out.push_back({stage + 1, x});
      groups.stages().exchange(out, in);
    });
    FAIL() << "the failure was lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "stage 1 broke");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
}

TEST(ThreadRanks, all_end_soon_when_one_does_not_send) {
  expect_all_end_with_a_stage(host_ranks(4, 0));
}
TEST(ProcessRanks, all_end_soon_when_one_does_not_send) {
  expect_all_end_with_a_stage(over_sockets(4, 29750));
}

/// One rank dies while the others wait for it in a collective of a group.
void expect_all_end_with_a_group(const MakeRank& make) {
  const auto start = std::chrono::steady_clock::now();
  try {
    run_ranks(0, 4, make, [](RankDevice& device) {
      const Groups groups(*device.backend, *device.communicator, {.tensor = 2});
      if (device.communicator->rank() == 3) throw std::runtime_error("rank 3 broke");
      for (;;) {
        groups.tensor().barrier();
        groups.data().barrier();
      }
    });
    FAIL() << "the failure was lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "rank 3 broke");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
}

TEST(ThreadRanks, all_end_soon_when_one_of_a_group_fails) {
  expect_all_end_with_a_group(host_ranks(4, 0));
}
TEST(ProcessRanks, all_end_soon_when_one_of_a_group_fails) {
  expect_all_end_with_a_group(over_sockets(4, 29734));
}

TEST(ThreadRanks, all_end_soon_when_one_fails) {
  const auto start = std::chrono::steady_clock::now();
  try {
    run_ranks(0, 4, host_ranks(4, 0), [](RankDevice& device) {
      if (device.communicator->rank() == 2) throw std::runtime_error("rank 2 broke");
      for (;;) device.communicator->barrier();
    });
    FAIL() << "the failure was lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "rank 2 broke");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(ThreadRanks, give_up_on_one_that_never_comes) {
  const auto meeting = make_meeting(2, 100ms);
  const auto first = make_thread_communicator(meeting, 0);
  EXPECT_THROW(first->barrier(), PeerFailure);
  // And stays broken for whoever comes later.
  EXPECT_THROW(make_thread_communicator(meeting, 1)->barrier(), PeerFailure);
}

TEST(ProcessRanks, notice_at_once_that_the_other_side_is_gone) {
  std::thread other([] { const Star gone("", 29732, 1, 2, Patience{.start = 20s}); });
  const auto here =
      make_process_communicator(std::make_unique<Star>("", 29732, 0, 2, Patience{.start = 20s}));
  other.join();
  EXPECT_THROW(here->barrier(), PeerFailure);
}

/// Whoever waits says which rank of the run it is that does not come, in a group too.
TEST(ThreadRanks, name_the_rank_that_never_comes) {
  const auto meeting = make_meeting(4, 100ms);
  const auto group = meeting->of(std::vector<int>{1, 3});
  const auto waits = make_thread_communicator(group, 0);
  try {
    waits->barrier();
    FAIL() << "nobody was missed";
  } catch (const PeerFailure& failure) {
    EXPECT_EQ(failure.rank, 3);
    EXPECT_STREQ(failure.what(), "rank 3 did not come within 0.1 s");
  }
}

/// Every collective of processes, with a rank that is there and takes no part.
TEST(ProcessRanks, name_the_rank_that_does_not_come_to_a_collective) {
  using Collective = std::function<void(Communicator&, const Tensor&, const Tensor&)>;
  const std::vector<Collective> collectives{
      [](Communicator& c, const Tensor& x, const Tensor&) { c.all_reduce(x); },
      [](Communicator& c, const Tensor& x, const Tensor& y) { c.reduce_scatter(x.slice(0, 2), y); },
      [](Communicator& c, const Tensor& x, const Tensor& y) { c.all_gather(y, x.slice(0, 2)); },
      [](Communicator& c, const Tensor& x, const Tensor&) { c.broadcast(x, 1); },
      [](Communicator& c, const Tensor& x, const Tensor& y) { c.all_to_all(y, x, 1); },
      [](Communicator& c, const Tensor&, const Tensor&) { c.barrier(); }};
  for (const Collective& collective : collectives) {
    const Listener door(0, 2);
    const Patience patience{.start = 20s, .silence = 200ms};
    std::mutex done;
    std::unique_lock lock(done);
    std::thread silent([&, port = door.port()] {
      const Star there("", port, 1, 2, patience);
      const std::lock_guard until(done);
    });
    const auto here = make_process_communicator(std::make_unique<Star>(door, 2, patience));
    std::array<float, 4> x{}, y{};
    const auto tensor = [](std::array<float, 4>& of) {
      return Tensor{reinterpret_cast<std::uintptr_t>(of.data()), DType::f32, {4}};
    };
    try {
      collective(*here, tensor(x), tensor(y));
      ADD_FAILURE() << "nobody was missed";
    } catch (const PeerFailure& failure) {
      EXPECT_EQ(failure.rank, 1);
      EXPECT_STREQ(failure.what(), "rank 1 did not come within 0.2 s");
    }
    lock.unlock();
    silent.join();
  }
}

}  // namespace
}  // namespace shardplan::validator
