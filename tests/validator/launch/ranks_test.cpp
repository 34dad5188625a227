#include "launch/ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/diagnostic.h"
#include "comm/groups.h"
#include "comm/processes.h"
#include "comm/threads.h"
#include "device/errors.h"
#include "launch/environment.h"

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

  const Tensor told = tensor(3);
  c.broadcast(told, ranks - 1);
  EXPECT_EQ(told.as<float>()[2], static_cast<float>(10 * (ranks - 1) + 2));
  c.barrier();
}

void expect_collectives(const MakeRank& make, int ranks) {
  run_ranks(0, ranks, make,
            [&](RankDevice& device) { expect_collectives(*device.backend, *device.communicator); });
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

TEST(ThreadRanks, collect_in_groups) {
  for (const int groups : {1, 2, 3, 6}) expect_groups(host_ranks(6, 0), 6, groups);
}

/// The same sockets that processes use, from threads.
MakeRank over_sockets(int ranks, int port) {
  return [=](int rank) {
    RankDevice device = host_ranks(1, 0)(0);
    device.communicator =
        make_process_communicator(std::make_unique<Star>("", port, rank, ranks, 20s));
    return device;
  };
}

TEST(ProcessRanks, collect_over_sockets) {
  expect_collectives(over_sockets(3, 29731), 3);
}

TEST(ProcessRanks, collect_in_groups) {
  expect_groups(over_sockets(4, 29733), 4, 2);
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
  std::thread other([] { const Star gone("", 29732, 1, 2, 20s); });
  const auto here = make_process_communicator(std::make_unique<Star>("", 29732, 0, 2, 20s));
  other.join();
  EXPECT_THROW(here->barrier(), PeerFailure);
}

std::optional<Environment> read(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const char* name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  });
}

TEST(Environment, is_read_from_torchrun_mpirun_and_srun) {
  const auto torch = read({{"RANK", "3"},
                           {"WORLD_SIZE", "8"},
                           {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "node0"},
                           {"MASTER_PORT", "1234"}});
  EXPECT_EQ(torch->rank, 3);
  EXPECT_EQ(torch->world, 8);
  EXPECT_EQ(torch->local_rank, 1);
  EXPECT_EQ(torch->address, "node0");
  EXPECT_EQ(torch->port, 1234);
  const auto slurm = read({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}});
  EXPECT_EQ(slurm->launcher, "srun");
  EXPECT_EQ(slurm->rank, 1);
  const auto mpi = read({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(mpi->launcher, "mpirun");
}

TEST(Environment, of_a_lone_process_is_none) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
}

TEST(Environment, that_contradicts_itself_is_refused) {
  EXPECT_THROW(read({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), InputError);
  EXPECT_THROW(read({{"RANK", "one"}, {"WORLD_SIZE", "4"}}), InputError);
}

}  // namespace
}  // namespace shardplan::validator
