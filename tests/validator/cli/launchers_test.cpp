// Ranks as launchers really start them: Open MPI's mpirun, and torchrun with its own store.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "validator/cli/crew.h"

namespace shardplan::validator::launchers_test {
namespace {

using ::testing::HasSubstr;

class Launchers : public ::testing::Test {
 protected:
  /// A job of as many ranks.
  std::string job(int ranks) const {
    Json job =
        read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json");
    job["run"]["steps"] = 3;
    job["run"]["warmup"] = 1;
    job["cluster"] = std::to_string(ranks) + "xA100-40GB";
    return folder_.file("job.json", job.dump());
  }
  /// Losses and norms of a record.
  static Json numbers_of(const Json& record) {
    Json numbers = Json::array();
    for (const Json& step : record.at("steps"))
      numbers.push_back({step.at("loss"), step.at("gradient_norm")});
    return numbers;
  }
  /// All ranks of the job as threads of one process.
  Json alone(int ranks) const {
    const Finished r = run_program(SHARDPLAN_VALIDATE, {job(ranks), "--format", "json"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return numbers_of(Json::parse(r.out).at("record"));
  }

  TemporaryFolder folder_;
};

TEST_F(Launchers, mpirun_starts_ranks_that_compute_what_one_process_does) {
  if (run_program("mpirun", {"--version"}).exit_code == 127)
    GTEST_SKIP() << "no mpirun here (openmpi-bin)";
  for (const int ranks : {2, 4}) {
    const std::string record = folder_.path("record.json");
    const Finished r =
        run_program("mpirun",
                    {"-n", std::to_string(ranks), "--oversubscribe", "--bind-to", "none",
                     SHARDPLAN_VALIDATE, job(ranks), "--device", "host", "--record", record},
                    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out.find("step     3"), r.out.rfind("step     3")) << "one rank tells of all";
    const Json all = read_json_file(record);
    EXPECT_EQ(all.at("ranks").size(), static_cast<std::size_t>(ranks));
    EXPECT_EQ(numbers_of(all), alone(ranks)) << ranks;
  }
}

TEST_F(Launchers, mpirun_is_told_when_a_job_has_other_ranks) {
  if (run_program("mpirun", {"--version"}).exit_code == 127)
    GTEST_SKIP() << "no mpirun here (openmpi-bin)";
  const Finished r = run_program(
      "mpirun", {"-n", "2", "--oversubscribe", SHARDPLAN_VALIDATE, job(4), "--device", "host"},
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  EXPECT_NE(r.exit_code, 0);
  EXPECT_THAT(r.err, HasSubstr("shardplan-validate: "));
}

TEST_F(Launchers, torchrun_starts_ranks_that_compute_what_one_process_does) {
  if (run_program("torchrun", {"--help"}).exit_code != 0) GTEST_SKIP() << "no torchrun here";
  const std::string record = folder_.path("record.json");
  const Finished r =
      run_program("torchrun", {"--nproc-per-node", "4", "--master-port",
                               std::to_string(free_port()), "--no-python", SHARDPLAN_VALIDATE,
                               job(4), "--device", "host", "--record", record});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json all = read_json_file(record);
  EXPECT_EQ(all.at("ranks").size(), 4U);
  EXPECT_EQ(numbers_of(all), alone(4));
}

/// The same without torchrun, of which PyTorch is the smaller part: what its agent does, that is,
/// the variables that it sets, and that it listens on MASTER_PORT while its ranks run.
TEST_F(Launchers, torchrun_keeps_its_port_and_ranks_find_each_other) {
  Crew crew(4);
  const int store = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(static_cast<std::uint16_t>(crew.port()));
  ASSERT_EQ(bind(store, reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
  ASSERT_EQ(listen(store, 8), 0);
  for (int rank = 0; rank < crew.ranks(); ++rank) {
    const std::string local = std::to_string(rank);
    crew.start(
        rank, {job(4), "--device", "host", "--record", crew.path("record.json")},
        {"LOCAL_RANK=" + local, "LOCAL_WORLD_SIZE=4", "GROUP_RANK=0", "MASTER_ADDR=127.0.0.1",
         "TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_RUN_ID=none"});
  }
  EXPECT_EQ(crew.wait(std::chrono::seconds(60)), std::vector<int>(4, 0)) << crew.err(0);
  close(store);
  EXPECT_EQ(numbers_of(read_json_file(crew.path("record.json"))), alone(4));
}

}  // namespace
}  // namespace shardplan::validator::launchers_test
