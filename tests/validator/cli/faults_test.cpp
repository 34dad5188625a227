// What becomes of a run of several processes when one of them is killed, hangs or finds no room.
#include <gmock/gmock.h>

#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "validator/cli/crew.h"

namespace shardplan::validator::faults_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRanks = 4;
constexpr int kKilled = 128 + SIGKILL;

class Faults : public ::testing::Test {
 protected:
  /// Runs until something ends it.
  std::string job(const std::function<void(Json&)>& change = [](Json&) {}) const {
    Json job =
        read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json");
    job["run"]["steps"] = 1000000;
    change(job);
    return folder_.file("job.json", job.dump());
  }
  /// The report that `rank` left.
  Json report(int rank = 0) const {
    const std::string path =
        record_ + (rank == 0 ? "" : ".rank" + std::to_string(rank)) + ".failure.json";
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
    return std::filesystem::exists(path) ? read_json_file(path) : Json::object();
  }
  /// All but `lost` have ended with code 5 within 30 s, naming it.
  void expect_all_end(Crew& crew, int lost, const std::string& how) const {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<int> codes;
    do codes = crew.wait(1s);
    while (std::count(codes.begin(), codes.end(), -1) > (crew.pid(lost) > 0 ? 1 : 0) &&
           std::chrono::steady_clock::now() - begin < 40s);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    const std::string text = "rank " + std::to_string(lost) + " on ";
    for (int rank = 0; rank < crew.ranks(); ++rank) {
      if (rank == lost) continue;
      EXPECT_EQ(codes[static_cast<std::size_t>(rank)], 5) << rank << ": " << crew.err(rank);
      EXPECT_THAT(crew.err(rank), AllOf(HasSubstr(text), HasSubstr(how))) << rank;
    }
    EXPECT_FALSE(std::filesystem::exists(record_));
  }

  TemporaryFolder folder_;
  std::string record_ = folder_.path("record.json");
};

struct Moment {
  std::string thread, phase;  ///< as the rank's thread is called, as reports have it
  int rank = 3;
};

class KilledRank : public Faults, public ::testing::WithParamInterface<Moment> {};

TEST_P(KilledRank, ends_the_others_which_say_who_and_when) {
  const Moment& at = GetParam();
  Crew crew(kRanks);
  crew.start_all({job(), "--quiet", "--record", record_});
  ASSERT_TRUE(crew.stop_in(at.rank, at.thread, 60s)) << crew.err(at.rank);
  kill(crew.pid(at.rank), SIGKILL);
  expect_all_end(crew, at.rank, "is lost: its process ended");
  EXPECT_EQ(crew.wait(1s)[static_cast<std::size_t>(at.rank)], kKilled);
  // The first process leaves a report; without it, each of the others does.
  const Json told = report(at.rank == 0 ? 1 : 0);
  ASSERT_EQ(told.at("lost").size(), 1U) << told;
  const Json& lost = told.at("lost").at(0);
  EXPECT_EQ(lost.at("rank"), at.rank);
  EXPECT_FALSE(lost.at("node").get<std::string>().empty());
  // Where rank 0 is within a step, the others hear with its next beat.
  if (at.rank != 0) {
    EXPECT_EQ(lost.at("phase"), at.phase);
    EXPECT_GE(lost.at("step").get<int>(), 1);
  }
  EXPECT_EQ(told.at("ranks").size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(Phases, KilledRank,
                         ::testing::Values(Moment{"forward", "forward"},
                                           Moment{"backward", "backward"},
                                           Moment{"step", "optimizer step"},
                                           Moment{"backward", "backward", 0}),
                         [](const auto& tested) {
                           return tested.param.thread + "_rank" + std::to_string(tested.param.rank);
                         });

TEST_F(Faults, rank_killed_before_all_have_met_ends_the_others) {
  Crew crew(kRanks);
  const std::vector<std::string> arguments{job(), "--quiet", "--start-timeout", "120"};
  for (const int rank : {0, 1, 2}) crew.start(rank, arguments);
  // Rank 0 holds two connections at its port: the last rank never comes.
  for (int i = 0; i < 600 && crew.connections(0) < 2; ++i) std::this_thread::sleep_for(50ms);
  ASSERT_EQ(crew.connections(0), 2U);
  kill(crew.pid(2), SIGKILL);
  const std::vector<int> codes = crew.wait(30s);
  EXPECT_EQ(codes[0], 5);
  EXPECT_EQ(codes[1], 5);
  EXPECT_THAT(crew.err(0), HasSubstr("rank 2 ended before rank 3 of 4 came"));
}

TEST_F(Faults, rank_that_never_comes_is_named) {
  Crew crew(2);
  crew.start(0, {job([](Json& j) { j["cluster"] = "2xA100-40GB"; }), "--start-timeout", "1"});
  EXPECT_EQ(crew.wait(30s)[0], 5);
  EXPECT_THAT(crew.err(0), HasSubstr("rank 1 of 2 did not come within 1 s"));
}

/// A pipe in the place of the weights, or of the record, holds whoever opens it.
TEST_F(Faults, rank_killed_while_it_loads_weights_ends_the_others) {
  ASSERT_EQ(mkfifo(folder_.path("w.safetensors").c_str(), 0600), 0);
  Crew crew(kRanks);
  crew.start_all({job([&](Json& j) { j["run"]["weights"] = folder_.path("w.safetensors"); }),
                  "--quiet", "--record", record_});
  ASSERT_TRUE(crew.stop_in(1, "weights", 60s)) << crew.err(1);
  kill(crew.pid(1), SIGKILL);
  expect_all_end(crew, 1, "its process ended (loading weights)");
  EXPECT_EQ(report().at("lost").at(0).at("phase"), "loading weights");
}

TEST_F(Faults, first_rank_killed_while_it_saves_the_record_ends_the_others) {
  ASSERT_EQ(mkfifo(record_.c_str(), 0600), 0);
  Crew crew(kRanks);
  crew.start_all({job([](Json& j) { j["run"]["steps"] = 6; }), "--quiet", "--record", record_});
  ASSERT_TRUE(crew.stop_in(0, "record", 60s)) << crew.err(0);
  kill(crew.pid(0), SIGKILL);
  const std::vector<int> codes = crew.wait(30s);
  for (const int rank : {1, 2, 3}) {
    EXPECT_EQ(codes[static_cast<std::size_t>(rank)], 5);
    EXPECT_THAT(crew.err(rank), HasSubstr("its process ended (step 6, saving the record)"));
    EXPECT_EQ(report(rank).at("lost").at(0).at("rank"), 0);
  }
}

TEST_F(Faults, rank_that_hangs_ends_the_others_in_the_time_that_is_asked_for) {
  for (const auto& [rank, phase] : {std::pair<int, std::string>{2, "backward"}, {0, "forward"}}) {
    Crew crew(kRanks);
    crew.start_all({job(), "--quiet", "--record", record_, "--peer-timeout", "2"});
    ASSERT_TRUE(crew.stop_in(rank, phase, 60s)) << crew.err(rank);
    const auto begin = std::chrono::steady_clock::now();
    expect_all_end(crew, rank, "is lost: nothing was heard for 2 s");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
    // Where rank 0 is within a step, the others hear with its next beat.
    const Json lost = report(rank == 0 ? 1 : 0).at("lost").at(0);
    EXPECT_EQ(lost.at("rank"), rank);
    if (rank != 0) {
      EXPECT_EQ(lost.at("phase"), phase);
    }
  }
}

/// Its process lives, and answers; its rank does not come.
TEST_F(Faults, rank_that_others_wait_for_in_vain_is_named) {
  const TemporaryFolder other;
  const auto with_weights = [](Json& j) { j["run"]["weights"] = "w.safetensors"; };
  std::filesystem::copy_file(
      std::string(SHARDPLAN_SOURCE_DIR) + "/tests/golden/training/tiny-gpt2.safetensors",
      folder_.path("w.safetensors"));
  ASSERT_EQ(mkfifo(other.path("w.safetensors").c_str(), 0600), 0);
  const Json tiny = read_json_file(std::string(SHARDPLAN_SOURCE_DIR) +
                                   "/data/measurements/losses/h200-1x-training-tiny-gpt2-fp32.json")
                        .at("job");
  const auto change = [&](Json& j) {
    for (const char* key : {"model", "precision"}) j[key] = tiny.at(key);
    j["workload"]["sequence_length"] = tiny.at("workload").at("sequence_length");
    with_weights(j);
  };
  const std::string path = job(change);
  Crew crew(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    crew.start(rank, {path, "--quiet", "--record", record_, "--peer-timeout", "3"}, {},
               rank == 3 ? other.path("") : folder_.path(""));
  expect_all_end(crew, 3, "is lost: others waited for 3 s (loading weights)");
  EXPECT_EQ(report().at("lost").at(0).at("rank"), 3);
}

TEST_F(Faults, rank_that_is_out_of_memory_says_so_and_ends_the_others) {
  Crew crew(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::string> arguments{job(), "--quiet", "--record", record_};
    if (rank == 2) arguments.insert(arguments.end(), {"--memory-limit", "1500000"});
    crew.start(rank, arguments);
  }
  const std::vector<int> codes = crew.wait(30s);
  EXPECT_EQ(codes, std::vector<int>(kRanks, 5));
  EXPECT_THAT(crew.err(2), HasSubstr("shardplan-validate: out of memory: no room for "));
  for (const int rank : {0, 1, 3})
    EXPECT_THAT(crew.err(rank),
                AllOf(HasSubstr("rank 2 on "), HasSubstr("is lost: out of memory")));
  EXPECT_EQ(report().at("lost").at(0).at("rank"), 2);
}

/// The kernel gives a process no more than its limit, whatever it asks for.
TEST_F(Faults, host_that_has_too_little_memory_is_said) {
  const std::string script =
      folder_.file("limit.sh", "ulimit -v 6000000\n" SHARDPLAN_VALIDATE " $1\n");
  const Finished r =
      run_program("bash", {script, job([](Json& j) { j["model"]["n_embd"] = 8192; })});
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(r.err,
              ::testing::AnyOf(HasSubstr("out of memory"), HasSubstr("the host cannot allocate")));
}

/// Linux kills a process of a control group that has no more: to the others it is lost.
TEST_F(Faults, rank_whose_control_group_has_too_little_memory_ends_the_others) {
  const std::string script = folder_.file(
      "group.sh",
      "name=shardplan-$$; root=/sys/fs/cgroup/memory; limit=memory.limit_in_bytes\n"
      "[ -e $root/$limit ] || { root=/sys/fs/cgroup; limit=memory.max; }\n"
      "{ mkdir $root/$name && echo 120000000 > $root/$name/$limit; } 2> /dev/null || exit 77\n"
      "echo 0 2> /dev/null > $root/$name/memory.swap.max\n"
      "export WORLD_SIZE=4 MASTER_PORT=$2\n"
      "for rank in 0 1 3; do RANK=$rank " SHARDPLAN_VALIDATE
      " $1 --quiet & pids=\"$pids $!\"; done\n"
      "(echo $BASHPID > $root/$name/cgroup.procs; RANK=2 exec " SHARDPLAN_VALIDATE
      " $1 --quiet)\necho lost $?\n"
      "for pid in $pids; do wait $pid; echo other $?; done\nrmdir $root/$name\nexit 0\n");
  const Finished r = run_program("bash", {script, job([](Json& j) { j["model"]["n_embd"] = 1024; }),
                                          std::to_string(free_port())});
  if (r.exit_code == 77) GTEST_SKIP() << "no control group can be made here";
  EXPECT_THAT(r.out, HasSubstr("lost 137\nother 5\nother 5\nother 5\n"));
  EXPECT_THAT(r.err, HasSubstr("rank 2 on "));
}

/// Terabytes of parameters are more than any has.
TEST_F(Faults, gpu_that_has_too_little_memory_is_said) {
  if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is no GPU here";
  const std::string path = job([](Json& j) {
    j["framework"] = {{"name", "native"}};
    j["cluster"] = "1xH100";
    j["model"]["n_embd"] = 1 << 18;
  });
  const Finished r = run_program(SHARDPLAN_VALIDATE, {path, "--quiet"});
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(r.err, HasSubstr("out of memory: no room for "));
}

TEST_F(Faults, full_disk_leaves_no_part_of_a_record_and_ends_all) {
  // A disk of 4 KiB for a record of more, where the kernel lets us mount one.
  const std::string disk = folder_.path("disk");
  std::filesystem::create_directory(disk);
  const std::string script =
      folder_.file("full.sh",
                   "mount -t tmpfs -o size=4k none $2 || exit 77\n"
                   "export WORLD_SIZE=4 MASTER_PORT=$3\n"
                   "for rank in 1 2 3; do RANK=$rank " SHARDPLAN_VALIDATE
                   " $1 --record $2/r.json & pids=\"$pids $!\"; done\n"
                   "RANK=0 " SHARDPLAN_VALIDATE
                   " $1 --quiet --record $2/r.json\ncode=$?\n"
                   "for pid in $pids; do wait $pid; echo other $?; done\nls -A $2\nexit $code\n");
  const Finished r =
      run_program("unshare", {"-rm", "bash", script, job([](Json& j) { j["run"]["steps"] = 6; }),
                              disk, std::to_string(free_port())});
  if (r.exit_code == 77 || r.err.find("unshare") != std::string::npos)
    GTEST_SKIP() << "nothing can be mounted here: " << r.err;
  EXPECT_EQ(r.exit_code, 3) << r.err;
  EXPECT_THAT(r.err, AllOf(HasSubstr("r.json: cannot be written"), HasSubstr("No space left")));
  EXPECT_THAT(r.out, AllOf(HasSubstr("other 5\nother 5\nother 5\n"),
                           ::testing::Not(HasSubstr("r.json\n"))));
}

}  // namespace
}  // namespace shardplan::validator::faults_test
