// shardplan-validate with states on NVMe, and what it does when the disk does not.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "load/record.h"
#include "support/subprocess.h"

namespace shardplan::validator::nvme_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Nvme : public ::testing::Test {
 protected:
  Nvme() { std::filesystem::create_directory(swap_); }

  std::string job_with(const std::function<void(Json&)>& change) const {
    Json job =
        read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json");
    job["run"]["steps"] = 4;
    job["run"]["warmup"] = 1;
    job["framework"]["offload_optimizer"] = "nvme";
    job["run"]["nvme"] = {{"path", swap_}};
    change(job);
    return folder_.file("job.json", job.dump());
  }
  static Finished run(const std::vector<std::string>& arguments) {
    return run_program(SHARDPLAN_VALIDATE, arguments);
  }

  TemporaryFolder folder_;
  std::string swap_ = folder_.path("swap");
};

TEST_F(Nvme, keeps_states_and_takes_of_gpu_host_and_disk_what_is_predicted) {
  for (const int stage : {1, 2, 3}) {
    const auto losses = [&](const char* kept, const char* io) {
      const Finished r = run({job_with([&](Json& j) {
                                j["framework"]["zero_stage"] = stage;
                                j["framework"]["offload_optimizer"] = kept;
                                j["run"]["nvme"]["io"] = io;
                              }),
                              "--format", "json", "--record", folder_.path("r.json")});
      EXPECT_EQ(r.exit_code, 0) << r.err;
      const Json out = Json::parse(r.out);
      for (const char* group : {"phases", "categories", "host"}) {
        const Json rows = out.value(group, Json::object());
        for (const auto& [name, row] : rows.items())
          EXPECT_EQ(row.at("predicted"), row.at("measured")) << name;
      }
      Json steps = Json::array();
      for (const Json& step : out.at("record").at("steps")) steps.push_back(step.at("loss"));
      return steps;
    };
    const Json here = losses("none", "auto");
    for (const char* io : {"auto", "threads"}) {
      EXPECT_EQ(here, losses("nvme", io)) << stage;
      const Json record = read_json_file(folder_.path("r.json"));
      const Json& nvme = record.at("measured").at("host").at("nvme");
      // Three steps are timed, and each rank's file is written once in each.
      EXPECT_GE(nvme.at("written").get<std::int64_t>(), 3 * nvme.at("bytes").get<std::int64_t>());
      EXPECT_GE(nvme.at("read").get<std::int64_t>(), 2 * nvme.at("bytes").get<std::int64_t>());
      EXPECT_THAT(nvme.at("io").get<std::string>(), HasSubstr("32 requests of 1.00 MiB"));
      EXPECT_EQ(load_records({folder_.path("r.json")}, load_hardware_catalog()).records.size(), 1U);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(swap_));
}

TEST_F(Nvme, folder_that_is_missing_or_takes_no_file_is_named_before_the_first_step) {
  for (const auto& [where, why] :
       {std::pair<std::string, std::string>{folder_.path("missing"), "No such file or directory"},
        {"/proc", "no file can be made there"}}) {
    const Finished r = run({job_with([](Json&) {}), "--nvme-path", where});
    EXPECT_EQ(r.exit_code, 5);
    EXPECT_THAT(r.err, AllOf(HasSubstr(where + ": "), HasSubstr(why),
                             HasSubstr("508 KiB are needed there")));
    EXPECT_THAT(r.out, Not(HasSubstr("step ")));
  }
}

TEST_F(Nvme, disk_that_is_full_is_said_before_the_first_step) {
  // A disk of 1 MiB for four files of half of one, where the kernel lets us mount one.
  const std::string script = folder_.file(
      "full.sh", "mount -t tmpfs -o size=1m none $2 || exit 77\n" SHARDPLAN_VALIDATE " $1\n");
  const Finished r = run_program("unshare", {"-rm", "sh", script, job_with([](Json&) {}), swap_});
  if (r.exit_code == 77 || r.err.find("unshare") != std::string::npos)
    GTEST_SKIP() << "nothing can be mounted here: " << r.err;
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(
      r.err, AllOf(HasSubstr(swap_), HasSubstr("508 KiB are needed there"), HasSubstr("are free")));
  EXPECT_THAT(r.out, Not(HasSubstr("step ")));
}

TEST_F(Nvme, limit_of_files_is_said_before_the_first_step) {
  const std::string script = folder_.file("limit.sh", "ulimit -f 100\n" SHARDPLAN_VALIDATE " $1\n");
  const Finished r = run_program("bash", {script, job_with([](Json&) {})});
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(r.err, AllOf(HasSubstr(swap_), HasSubstr("ulimit -f"),
                           HasSubstr("508 KiB are needed there")));
}

TEST_F(Nvme, file_that_breaks_off_ends_all_ranks) {
  const std::string job = job_with([](Json& j) { j["run"]["steps"] = 1000000; });
  // /proc has the files without names of the process: one of them loses its end.
  const std::string script =
      folder_.file("cut.sh", SHARDPLAN_VALIDATE
                   " $1 > $2 &\nuntil grep -qs 'step     2' $2; do sleep 0.1; done\n"
                   "for f in /proc/$!/fd/*; do\n"
                   "  case $(readlink $f) in */swap/*deleted*) break ;; esac\ndone\n"
                   // A write that is under way gives it a new one: again, while the process has it.
                   "while : > $f; do sleep 0.02; done 2> /dev/null\nwait $!\n");
  const Finished r = run_program("bash", {script, job, folder_.path("log")});
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(r.err, AllOf(HasSubstr(swap_), HasSubstr("the file ends there")));
}

TEST_F(Nvme, killed_rank_leaves_no_file_and_no_room_taken) {
  const std::string job = job_with([](Json& j) { j["run"]["steps"] = 1000000; });
  const std::string script = folder_.file(
      "kill.sh", SHARDPLAN_VALIDATE
      " $1 > $2 &\nuntil grep -qs 'step ' $2; do sleep 0.1; done\n"
      "ls -l /proc/$!/fd | grep -c '/swap/.*deleted'\nls -A $3\nkill -9 $!\nwait $!\nls -A $3\n");
  const Finished r = run_program("bash", {script, job, folder_.path("log"), swap_});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "4\n");  // a file a rank while it ran, and none that has a name
}

TEST_F(Nvme, disk_is_measured_for_people_programs_and_clusters) {
  const std::vector<std::string> quick{"storage",   swap_,     "--seconds", "0.01",    "--bytes",
                                       "268435456", "--chunk", "1048576",   "--depth", "4"};
  const auto with = [&](const char* format) {
    std::vector<std::string> arguments = quick;
    arguments.insert(arguments.end(), {"--format", format});
    const Finished r = run(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.out;
  };
  EXPECT_THAT(with("text"), AllOf(HasSubstr("threads"), HasSubstr("1.00 MiB"), HasSubstr("GB/s")));
  const Json rates = Json::parse(with("json"));
  EXPECT_GT(rates.at("rates").at(0).at("both_bandwidth").get<double>(), 0);
  // A cluster file takes what is printed for one.
  Json job = read_json_file(job_with([](Json&) {}));
  job["cluster"] = Json::parse(with("cluster"));
  job["cluster"].update({{"gpu", "H100"}, {"gpus_per_node", 2}});
  const Finished planned = run({folder_.file("of_disk.json", job.dump()), "--dry-run"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("NVMe"));

  EXPECT_EQ(run({"storage"}).exit_code, 2);
  EXPECT_EQ(run({"storage", swap_, "--chunk", "5000"}).exit_code, 2);
  const Finished missing = run({"storage", folder_.path("missing")});
  EXPECT_EQ(missing.exit_code, 5);
  EXPECT_THAT(missing.err, HasSubstr("No such file or directory"));
  EXPECT_TRUE(std::filesystem::is_empty(swap_));
}

}  // namespace
}  // namespace shardplan::validator::nvme_test
