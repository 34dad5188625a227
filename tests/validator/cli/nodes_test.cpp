// Runs of several machines: their ranks, one record, and a machine that dies. The machines are
// network namespaces that a pair of virtual Ethernet devices joins.
#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/record.h"
#include "validator/cli/crew.h"

namespace shardplan::validator::nodes_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Nodes : public ::testing::Test {
 protected:
  std::string job(const std::function<void(Json&)>& change = [](Json&) {}) const {
    Json job =
        read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json");
    job["run"]["steps"] = 3;
    job["run"]["warmup"] = 1;
    job["cluster"] = {{"gpu", "A100-SXM4-40GB"}, {"gpus_per_node", 2}, {"nodes", 2}};
    change(job);
    return folder_.file("job.json", job.dump());
  }
  /// Runs `body` as a shell script on the first of two machines, 10.77.0.1; $node2 runs a command
  /// on the second, 10.77.0.2. $1 and so on are `arguments`. Nothing is left of the machines once
  /// it has ended.
  Finished on_two_machines(const std::string& body, std::vector<std::string> arguments) const {
    arguments.insert(
        arguments.begin(),
        {"-rmn", "bash",
         folder_.file("machines.sh",
                      "unshare -n sleep 600 & other=$!\n"
                      "trap 'kill $other' EXIT\n"
                      "here=$(readlink /proc/self/ns/net)\n"
                      "until [ \"$(readlink /proc/$other/ns/net)\" != \"$here\" ]; do sleep 0.02; "
                      "done\n"
                      "node2=\"nsenter -n -t $other\"\n"
                      "{ ip link add end-a type veth peer name end-b netns $other &&\n"
                      "  ip addr add 10.77.0.1/24 dev end-a && ip link set end-a up &&\n"
                      "  ip link set lo up && $node2 ip addr add 10.77.0.2/24 dev end-b &&\n"
                      "  $node2 ip link set end-b up && $node2 ip link set lo up; } || exit 77\n" +
                          body)});
    return run_program("unshare", arguments);
  }
  static bool impossible(const Finished& r) {
    return r.exit_code == 77 || r.err.find("unshare: ") != std::string::npos || r.exit_code == 127;
  }

  TemporaryFolder folder_;
  std::string record_ = folder_.path("record.json");
};

void expect_whole_record(const std::string& path, const std::vector<std::string>& nodes) {
  const Json record = read_json_file(path);
  const Json& ranks = record.at("ranks");
  ASSERT_EQ(ranks.size(), nodes.size());
  for (std::size_t r = 0; r < nodes.size(); ++r) {
    EXPECT_EQ(ranks[r].at("rank"), r);
    EXPECT_EQ(ranks[r].at("node"), nodes[r]);
    EXPECT_EQ(ranks[r].at("allocated_peak"), record.at("measured").at("allocated_peak"));
    EXPECT_GT(ranks[r].at("step_seconds").get<double>(), 0);
    EXPECT_GE(ranks[r].at("step_seconds"), ranks[r].at("waited_seconds"));
  }
  EXPECT_EQ(load_records({path}, load_hardware_catalog()).records.size(), 1U);
}

TEST_F(Nodes, of_a_list_of_hosts_run_as_one_and_are_told_apart) {
  const Finished r = on_two_machines("run=\"" SHARDPLAN_VALIDATE
                                     " $1 --nodes --hosts 10.77.0.1,10.77.0.2 --record $2\"\n"
                                     "$node2 $run > $2.other & pid=$!\n$run; code=$?\n"
                                     "wait $pid; echo other $?; cat $2.other; exit $code\n",
                                     {job(), record_});
  if (impossible(r)) GTEST_SKIP() << "no network namespaces can be made here: " << r.err;
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("step     3"), HasSubstr("node"), HasSubstr("without waits"),
                           HasSubstr("  10.77.0.1     0  host"), HasSubstr("10.77.0.2     3  host"),
                           HasSubstr("slowest: rank "), HasSubstr("other 0\n")));
  // The first process alone says something.
  EXPECT_EQ(r.out.find("other 0\n") + 8, r.out.size());
  expect_whole_record(record_, {"10.77.0.1", "10.77.0.1", "10.77.0.2", "10.77.0.2"});
  // The same job in one process: where ranks are does not change what they compute.
  const Finished alone = run_program(SHARDPLAN_VALIDATE, {job(), "--format", "json"});
  EXPECT_EQ(Json::parse(alone.out).at("record").at("steps").back().at("gradient_norm"),
            read_json_file(record_).at("steps").back().at("gradient_norm"));
}

/// $3: what becomes of the second machine once the first step is done.
constexpr const char* kDies =
    "export WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500\n"
    "run=\"" SHARDPLAN_VALIDATE
    " $1 --quiet --record $2 --peer-timeout 4\"\n"
    "RANK=2 LOCAL_RANK=0 SLURMD_NODENAME=two $node2 $run & two=$!\n"
    "RANK=3 LOCAL_RANK=1 SLURMD_NODENAME=two $node2 $run & three=$!\n"
    "RANK=1 LOCAL_RANK=1 SLURMD_NODENAME=one $run & one=$!\n"
    "RANK=0 LOCAL_RANK=0 SLURMD_NODENAME=one ${run/--quiet/} > $2.log & zero=$!\n"
    "until grep -qs 'step ' $2.log || ! kill -0 $zero; do sleep 0.05; done\n"
    "begin=$(date +%s)\neval \"$3\"\n"
    "for pid in $zero $one $two $three; do wait $pid; echo ended $?; done\n"
    "echo took $(($(date +%s) - begin))\n";

/// Seconds until the last process ended.
int seconds_of(const Finished& r) {
  const std::size_t at = r.out.find("took ");
  return at == std::string::npos ? 1000 : std::stoi(r.out.substr(at + 5));
}

TEST_F(Nodes, that_die_end_the_others_and_leave_a_report) {
  const std::string endless = job([](Json& j) { j["run"]["steps"] = 1000000; });
  const Finished r = on_two_machines(kDies, {endless, record_, "kill -9 $two $three"});
  if (impossible(r)) GTEST_SKIP() << "no network namespaces can be made here: " << r.err;
  EXPECT_THAT(r.out, HasSubstr("ended 5\nended 5\nended 137\nended 137\n")) << r.err;
  EXPECT_LT(seconds_of(r), 30);
  EXPECT_THAT(r.err, HasSubstr("ranks 2, 3 on two are lost: their processes ended (step "));
  const Json report = read_json_file(record_ + ".failure.json");
  EXPECT_EQ(report.at("schema"), "shardplan.failure/1");
  ASSERT_EQ(report.at("lost").size(), 2U);
  EXPECT_EQ(report.at("lost").at(1).at("rank"), 3);
  EXPECT_EQ(report.at("lost").at(1).at("node"), "two");
  EXPECT_GE(report.at("lost").at(1).at("step").get<int>(), 1);
  EXPECT_EQ(report.at("told_by").at("node"), "one");
  EXPECT_FALSE(std::filesystem::exists(record_));
}

TEST_F(Nodes, that_are_cut_off_end_on_both_sides) {
  const std::string endless = job([](Json& j) { j["run"]["steps"] = 1000000; });
  const Finished r = on_two_machines(kDies, {endless, record_, "ip link set end-a down"});
  if (impossible(r)) GTEST_SKIP() << "no network namespaces can be made here: " << r.err;
  EXPECT_THAT(r.out, HasSubstr("ended 5\nended 5\nended 5\nended 5\n")) << r.err;
  EXPECT_LT(seconds_of(r), 30);
  EXPECT_THAT(r.err, AllOf(HasSubstr("ranks 2, 3 on two are lost: nothing was heard for 4 s"),
                           HasSubstr("rank 0 on one is lost: nothing was heard for 4 s")));
  // Each side leaves a report of its own.
  for (const char* name : {".failure.json", ".rank2.failure.json", ".rank3.failure.json"})
    EXPECT_TRUE(std::filesystem::exists(record_ + name)) << name;
}

TEST_F(Nodes, of_other_jobs_or_other_numbers_of_ranks_are_refused) {
  const TemporaryFolder other;
  Json changed = read_json_file(job());
  changed["optimizer"]["lr"] = 1e-3;
  Crew two(4);
  for (int rank = 0; rank < 4; ++rank)
    two.start(rank, {rank == 3 ? other.file("job.json", changed.dump()) : job()});
  EXPECT_EQ(two.wait(std::chrono::seconds(30)), std::vector<int>(4, 3));
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_THAT(two.err(rank), AllOf(HasSubstr("rank 3 on "), HasSubstr("runs another job")));

  const Finished hosts =
      run_program(SHARDPLAN_VALIDATE, {job(), "--hosts", "127.0.0.1:2,192.0.2.1:3"});
  EXPECT_EQ(hosts.exit_code, 3);
  EXPECT_THAT(hosts.err, HasSubstr("--hosts names 5 ranks, the job has 4"));
  const Finished both = run_program(SHARDPLAN_VALIDATE, {job(), "--hosts", "127.0.0.1,192.0.2.1"},
                                    "RANK=0 WORLD_SIZE=4");
  EXPECT_EQ(both.exit_code, 3);
  EXPECT_THAT(both.err, HasSubstr("torchrun has started this process"));
}

TEST_F(Nodes, are_told_apart_for_programs) {
  const Finished r = run_program(SHARDPLAN_VALIDATE, {job(), "--nodes", "--format", "json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json nodes = Json::parse(r.out).at("nodes");
  ASSERT_EQ(nodes.at("ranks").size(), 4U);
  for (const Json& rank : nodes.at("ranks")) {
    EXPECT_EQ(rank.at("peak").at("predicted"), rank.at("peak").at("measured"));
    EXPECT_EQ(rank.at("device"), "host");
  }
  EXPECT_LT(nodes.at("slowest_rank").get<int>(), 4);
}

}  // namespace
}  // namespace shardplan::validator::nodes_test
