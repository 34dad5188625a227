// How processes learn their place from a launcher or a list of hosts, and what contradicts itself.
#include "launch/environment.h"

#include <gmock/gmock.h>

#include <map>

#include "base/diagnostic.h"
#include "launch/hosts.h"
#include "support/subprocess.h"

namespace shardplan::validator::environment_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

std::optional<Environment> read(const Variables& variables) {
  return read_environment([&](const char* name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  });
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
std::string refusal(const Variables& variables) {
  return refusal([&] { read(variables); });
}

TEST(Environment, is_read_from_torchrun) {
  const auto e = read({{"RANK", "3"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "node0"},
                       {"MASTER_PORT", "1234"}});
  EXPECT_EQ(e->launcher, "torchrun");
  EXPECT_EQ(e->rank, 3);
  EXPECT_EQ(e->process, 3);
  EXPECT_EQ(e->world, 8);
  EXPECT_EQ(e->local_rank, 1);
  EXPECT_EQ(e->local_world, 2);
  EXPECT_EQ(e->address, "node0");
  EXPECT_EQ(e->port, 1234);
  EXPECT_EQ(e->first_ranks.size(), 8U);
}

/// torchrun's own store is on the port that it names.
TEST(Environment, leaves_torchruns_store_its_port) {
  Variables v{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1234"}};
  EXPECT_EQ(read(v)->port, 1234);
  v["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(read(v)->port, 1234);
  v["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(read(v)->port, 1235);
  v["MASTER_PORT"] = "65535";
  EXPECT_EQ(read(v)->port, 65534);
}

TEST(Environment, is_read_from_mpirun_and_srun) {
  const auto mpi = read({{"OMPI_COMM_WORLD_RANK", "2"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"MASTER_ADDR", "10.0.0.1"}});
  EXPECT_EQ(mpi->launcher, "mpirun");
  EXPECT_EQ(mpi->rank, 2);
  EXPECT_EQ(mpi->local_world, 2);
  EXPECT_EQ(mpi->port, 29500);
  const auto slurm = read({{"SLURM_PROCID", "5"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NTASKS_PER_NODE", "4"},
                           {"SLURM_STEP_NUM_NODES", "2"},
                           {"SLURMD_NODENAME", "gpu-17"},
                           {"MASTER_ADDR", "gpu-16"}});
  EXPECT_EQ(slurm->launcher, "srun");
  EXPECT_EQ(slurm->rank, 5);
  EXPECT_EQ(slurm->local_rank, 1);
  EXPECT_EQ(slurm->local_world, 4);
  EXPECT_EQ(slurm->node, "gpu-17");
}

TEST(Environment, of_a_lone_process_is_none) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
  EXPECT_FALSE(read({{"SLURM_NTASKS", "4"}}));  // a shell that salloc opened
}

TEST(Environment, that_contradicts_itself_is_refused_by_name) {
  EXPECT_THAT(refusal({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
              AllOf(HasSubstr("RANK"), HasSubstr("rank 4 of 4")));
  EXPECT_THAT(refusal({{"RANK", "one"}, {"WORLD_SIZE", "4"}}), HasSubstr("found 'one'"));
  EXPECT_THAT(refusal({{"RANK", "1"}}), HasSubstr("WORLD_SIZE: RANK is set and it is not"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}}), HasSubstr("RANK: WORLD_SIZE is set and it is not"));
  EXPECT_THAT(refusal({{"OMPI_COMM_WORLD_RANK", "1"}}), HasSubstr("OMPI_COMM_WORLD_SIZE"));
  EXPECT_THAT(refusal({{"SLURM_PROCID", "1"}}), HasSubstr("SLURM_NTASKS"));
  const Variables of_four{{"RANK", "1"}, {"WORLD_SIZE", "4"}};
  const auto with = [&](Variables more) {
    more.insert(of_four.begin(), of_four.end());
    return refusal(more);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_THAT(with({{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}}),
              HasSubstr("local rank 1 of 1"));
  EXPECT_THAT(with({{"LOCAL_WORLD_SIZE", "8"}}), HasSubstr("8 ranks on this host, 4 in all"));
  EXPECT_THAT(with({{"LOCAL_RANK", "2"}}), HasSubstr("rank 1 is local rank 2"));
  EXPECT_THAT(with({{"MASTER_PORT", "70000"}}), HasSubstr("MASTER_PORT"));
}

TEST(Environment, of_several_hosts_without_a_meeting_place_is_refused) {
  EXPECT_THAT(refusal({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("MASTER_ADDR"), HasSubstr("torchrun started 4 ranks on several")));
  EXPECT_THAT(refusal({{"OMPI_COMM_WORLD_RANK", "1"},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
              HasSubstr("mpirun started 4 ranks on several hosts"));
  EXPECT_THAT(
      refusal({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_NODES", "2"}}),
      HasSubstr("srun started 4 ranks on several hosts"));
}

std::vector<std::string> text_of_hosts(const std::string& text) {
  std::vector<std::string> out;
  for (const Host& host : read_hosts(text, 8))
    out.push_back(host.name + " " + std::to_string(host.ranks));
  return out;
}

TEST(Hosts, are_read_from_the_command_line_and_from_files) {
  EXPECT_THAT(text_of_hosts("a,b:2"), ElementsAre("a 8", "b 2"));
  const TemporaryFolder folder;
  EXPECT_THAT(text_of_hosts(folder.file(
                  "hosts", "# machines\nnode0 slots=4 max_slots=4\n\nnode1:2 # half\nnode2\n")),
              ElementsAre("node0 4", "node1 2", "node2 8"));
}

TEST(Hosts, that_make_no_sense_are_refused) {
  EXPECT_THAT(refusal([] { read_hosts("a,a", 1); }), HasSubstr("'a' is named twice"));
  EXPECT_THAT(refusal([] { read_hosts("a:0", 1); }), HasSubstr("found 'a:0'"));
  EXPECT_THAT(refusal([] { read_hosts("a:x", 1); }), HasSubstr("node0:4"));
  EXPECT_THAT(refusal([] { read_hosts(",", 1); }), HasSubstr("names no host"));
}

TEST(Hosts, give_each_machine_its_ranks) {
  const std::vector<Host> hosts{{"a", 2}, {"b", 4}, {"c", 1}};
  const Environment e = environment_of(hosts, "b", 1234);
  EXPECT_EQ(e.world, 7);
  EXPECT_EQ(e.rank, 2);
  EXPECT_EQ(e.count, 4);
  EXPECT_EQ(e.local_world, 4);
  EXPECT_EQ(e.process, 1);
  EXPECT_EQ(e.address, "a");
  EXPECT_EQ(e.node, "b");
  EXPECT_THAT(e.first_ranks, ElementsAre(0, 2, 6));
  const auto here = [](const char* name) {
    return [name](const std::string& host) { return host == name; };
  };
  EXPECT_EQ(environment_of(hosts, "", 1234, here("c")).rank, 6);
  EXPECT_THAT(refusal([&] { environment_of(hosts, "", 1234, here("d")); }),
              HasSubstr("is not among the hosts"));
  EXPECT_THAT(refusal([&] { environment_of(hosts, "d", 1234); }),
              HasSubstr("'d' is not among the hosts"));
  EXPECT_THAT(
      refusal([&] { environment_of(hosts, "", 1234, [](const std::string&) { return true; }); }),
      HasSubstr("'a' and 'b' are both this host"));
}

TEST(Hosts, know_this_machine_by_name_and_address) {
  EXPECT_TRUE(is_this_host(host_name()));
  EXPECT_TRUE(is_this_host("127.0.0.1"));
  EXPECT_FALSE(is_this_host("192.0.2.1"));  // of no machine (RFC 5737)
}

}  // namespace
}  // namespace shardplan::validator::environment_test
