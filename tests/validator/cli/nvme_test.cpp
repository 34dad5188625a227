// shardplan-validate with states and parameters on NVMe, and what it does when the disk does not.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>

#include "estimate/estimate.h"
#include "job/engine_job.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/record.h"
#include "support/subprocess.h"

namespace shardplan::validator::nvme_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kStates = "508 KiB are needed there";
constexpr const char* kParameters = "100 KiB are needed there";

class Nvme : public ::testing::Test {
 protected:
  Nvme() { std::filesystem::create_directory(swap_); }

  std::string job_with(const std::function<void(Json&)>& change,
                       const char* name = "job.json") const {
    Json job =
        read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json");
    job["workload"]["micro_batch"] = 2;
    job["run"]["steps"] = 4;
    job["run"]["warmup"] = 1;
    job["framework"]["offload_optimizer"] = "nvme";
    job["run"]["nvme"] = {{"path", swap_}};
    change(job);
    return folder_.file(name, job.dump());
  }
  /// With parameters there, and states on the host.
  std::string parameters_job_with(const std::function<void(Json&)>& change) const {
    return job_with(
        [&](Json& j) {
          j["framework"]["zero_stage"] = 3;
          j["framework"]["offload_optimizer"] = "cpu";
          j["framework"]["offload_param"] = "nvme";
          change(j);
        },
        "parameters.json");
  }
  static Finished run(const std::vector<std::string>& arguments) {
    return run_program(SHARDPLAN_VALIDATE, arguments);
  }
  /// Of a run where every byte is as predicted.
  Json record_of(const std::string& job) const {
    const Finished r = run({job, "--format", "json", "--record", folder_.path("r.json")});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    if (r.exit_code != 0) return {};
    const Json out = Json::parse(r.out);
    for (const char* group : {"phases", "categories", "host"}) {
      const Json rows = out.value(group, Json::object());
      for (const auto& [name, row] : rows.items())
        EXPECT_EQ(row.at("predicted"), row.at("measured")) << name;
    }
    return out.at("record");
  }
  static Json losses_of(const Json& record) {
    Json losses = Json::array();
    for (const Json& step : record.at("steps")) losses.push_back(step.at("loss"));
    return losses;
  }

  TemporaryFolder folder_;
  std::string swap_ = folder_.path("swap");
};

TEST_F(Nvme, tells_what_share_of_the_disks_own_rate_the_steps_had) {
  double timed = 0;
  const auto share_of = [&](const std::vector<std::string>& more, Json& record) {
    const std::string job = job_with([](Json& j) { j["cluster"] = "1xA100-40GB"; });
    std::vector<std::string> arguments{job, "--record", folder_.path("r.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished r = run(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const Json whole = read_json_file(folder_.path("r.json"));
    record = whole.at("measured").at("host").at("nvme");
    timed = 0;
    for (std::size_t i = 1; i < whole.at("steps").size(); ++i)
      timed += whole.at("steps").at(i).at("seconds").get<double>();
    return r.out;
  };
  Json nvme;
  EXPECT_THAT(share_of({"--time-nvme"}, nvme),
              AllOf(HasSubstr("of the disk's own rate"), HasSubstr("as timed before the run")));
  const Json& own = nvme.at("of_own_rate");
  EXPECT_TRUE(own.at("timed").get<bool>());
  const double alone = nvme.at("read").get<double>() / own.at("read_bandwidth").get<double>() +
                       nvme.at("written").get<double>() / own.at("write_bandwidth").get<double>();
  EXPECT_NEAR(own.at("while_busy").get<double>(), alone / nvme.at("busy_seconds").get<double>(),
              1e-3 * own.at("while_busy").get<double>());
  EXPECT_LT(own.at("over_steps").get<double>(), own.at("while_busy").get<double>());
  // Of three timed steps the last one's update comes once they are over.
  EXPECT_LT(own.at("over_steps").get<double>(), 0.95 * alone / timed);
  // Nobody says how fast the disk is.
  EXPECT_THAT(share_of({}, nvme), Not(HasSubstr("of the disk's own rate")));
  EXPECT_FALSE(nvme.contains("of_own_rate"));
}

TEST_F(Nvme, keeps_states_and_takes_of_gpu_host_and_disk_what_is_predicted) {
  for (const int stage : {1, 2, 3}) {
    const auto losses = [&](const char* kept, const char* io) {
      return losses_of(record_of(job_with([&](Json& j) {
        j["framework"]["zero_stage"] = stage;
        j["framework"]["offload_optimizer"] = kept;
        j["run"]["nvme"]["io"] = io;
      })));
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

/// Bytes that a step's prediction reads from NVMe, and writes there.
std::pair<std::int64_t, std::int64_t> predicted_traffic(const std::string& file) {
  const EngineJob job = load_engine_job(read_json_file(file), file, load_hardware_catalog());
  std::pair<std::int64_t, std::int64_t> bytes;
  for (const TrafficLine& line : estimate(job.job.model, job.plan(), load_calibration()).traffic) {
    if (line.link != LinkKind::nvme) continue;
    (line.what.find("from NVMe") != line.what.npos ? bytes.first : bytes.second) +=
        line.bytes_per_step;
  }
  return bytes;
}

TEST_F(Nvme, keeps_parameters_and_moves_what_is_predicted) {
  const Json llama{{"model_type", "llama"},    {"hidden_size", 64},
                   {"intermediate_size", 96},  {"num_hidden_layers", 5},
                   {"num_attention_heads", 4}, {"vocab_size", 256},
                   {"num_key_value_heads", 2}, {"max_position_embeddings", 64}};
  for (const char* precision : {"bf16-master", "bf16-pure"})
    for (const bool untied : {false, true}) {
      const auto job = [&](const char* states, const char* parameters) {
        return job_with([&](Json& j) {
          if (untied) j["model"] = llama;
          j["precision"] = precision;
          j["workload"]["gradient_accumulation"] = 2;
          j["framework"]["zero_stage"] = 3;
          j["framework"]["offload_optimizer"] = states;
          j["framework"]["offload_param"] = parameters;
        });
      };
      const Json here = losses_of(record_of(job("none", "none")));
      EXPECT_EQ(here, losses_of(record_of(job("nvme", "nvme")))) << precision;
      const std::string away = job("cpu", "nvme");
      const Json record = record_of(away);
      EXPECT_EQ(here, losses_of(record)) << precision;
      const Json& nvme = record.at("measured").at("host").at("nvme");
      // Three steps are timed, and the update of the last one is made when the run ends.
      const auto [reads, writes] = predicted_traffic(away);
      EXPECT_EQ(nvme.at("written").get<std::int64_t>(), 4 * writes) << precision << untied;
      const std::int64_t for_update = nvme.at("read").get<std::int64_t>() - 3 * reads;
      if (std::string(precision) == "bf16-master") {
        EXPECT_EQ(for_update, 0) << untied;
      } else {
        EXPECT_GT(for_update, 0) << untied;
        EXPECT_LE(for_update, nvme.at("bytes").get<std::int64_t>()) << untied;
      }
    }
  EXPECT_TRUE(std::filesystem::is_empty(swap_));
}

std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A job whose parameters are on NVMe, through a cuFile that is not NVIDIA's (fake_cufile.cpp).
void with_cufile(Json& job, const char* precision, const char* states) {
  job["precision"] = precision;
  job["framework"]["zero_stage"] = 3;
  job["framework"]["offload_optimizer"] = states;
  job["framework"]["offload_param"] = "nvme";
  job["framework"]["use_gds"] = true;
  job["run"]["nvme"]["cufile"] = SHARDPLAN_FAKE_CUFILE;
  job["run"]["nvme"]["direct"] = false;  // it moves what direct I/O does not
}

TEST_F(Nvme, parameters_go_past_the_host_through_cufile_and_all_is_as_without) {
  setenv("FAKE_CUFILE_LOG", folder_.path("log").c_str(), 1);
  for (const auto& [precision, states, delayed] : {std::tuple{"bf16-master", "nvme", false},
                                                   {"bf16-pure", "cpu", false},
                                                   {"bf16-pure", "nvme", true}}) {
    const auto job = [&](bool direct) {
      return job_with([&](Json& j) {
        with_cufile(j, precision, states);
        j["model"]["n_layer"] = 5;
        j["workload"]["gradient_accumulation"] = 2;
        j["framework"]["delayed_update"] = delayed;
        j["framework"]["use_gds"] = direct;
      });
    };
    const Json without = losses_of(record_of(job(false)));
    const Json record = record_of(job(true));
    EXPECT_EQ(without, losses_of(record)) << precision << states << delayed;
    const Json& direct = record.at("measured").at("host").at("nvme").at("direct");
    EXPECT_THAT(direct.at("io").get<std::string>(), HasSubstr("compatibility mode"));
    EXPECT_GT(direct.at("read").get<std::int64_t>(), 0);
    EXPECT_EQ(direct.at("written").get<std::int64_t>(), 0);  // first values, before any step
    EXPECT_EQ(contents_of(folder_.path("log")),
              "drivers 0 files 0 buffers 0 unregistered 0 reads some writes some\n");
  }
  unsetenv("FAKE_CUFILE_LOG");
  EXPECT_TRUE(std::filesystem::is_empty(swap_));
}

TEST_F(Nvme, cufile_that_fails_ends_the_run_and_says_why) {
  const auto refused = [&](const char* fault, const std::function<void(Json&)>& change) {
    setenv("FAKE_CUFILE", fault, 1);
    const Finished r = run({job_with([&](Json& j) {
      with_cufile(j, "bf16-master", "cpu");
      change(j);
    })});
    unsetenv("FAKE_CUFILE");
    return r;
  };
  const auto as_it_is = [](Json&) {};
  const auto elsewhere = [](Json& j) { j["run"]["nvme"]["cufile"] = "/nowhere/libcufile.so.0"; };
  const auto on_host = [](Json& j) { j["framework"]["offload_param"] = "cpu"; };
  const auto for_all = [](Json& j) { j["run"]["nvme"]["io"] = "cufile"; };
  for (const auto& [r, code, words] :
       {std::tuple{refused("no driver", as_it_is), 5, "nvidia-fs is not loaded"},
        {refused("fails", as_it_is), 5, "input or output failed (5044)"},
        {refused("", elsewhere), 5, "/nowhere/libcufile.so.0"},
        {refused("", on_host), 3, "only parameters on NVMe are read by the GPU"},
        {refused("", for_all), 3, "framework.use_gds"}}) {
    EXPECT_EQ(r.exit_code, code) << r.err;
    EXPECT_THAT(r.err, HasSubstr(words));
  }
}

TEST_F(Nvme, folder_that_is_missing_or_takes_no_file_is_named_before_the_first_step) {
  for (const auto& [where, why] :
       {std::pair<std::string, std::string>{folder_.path("missing"), "No such file or directory"},
        {"/proc", "no file can be made there"}}) {
    for (const auto& [job, needed] : {std::pair{job_with([](Json&) {}), kStates},
                                      {parameters_job_with([](Json&) {}), kParameters}}) {
      const Finished r = run({job, "--nvme-path", where});
      EXPECT_EQ(r.exit_code, 5);
      EXPECT_THAT(r.err, AllOf(HasSubstr(where + ": "), HasSubstr(why), HasSubstr(needed)));
      EXPECT_THAT(r.out, Not(HasSubstr("step ")));
    }
  }
}

TEST_F(Nvme, disk_that_is_full_is_said_before_the_first_step) {
  // A disk of 1 MiB for four files of half of one, where the kernel lets us mount one.
  const std::string script = folder_.file(
      "full.sh", "mount -t tmpfs -o size=1m none $2 || exit 77\n" SHARDPLAN_VALIDATE " $1\n");
  const auto more_layers = [](Json& j) { j["model"]["n_layer"] = 24; };
  for (const auto& [job, needed] :
       {std::pair{job_with([](Json&) {}), kStates},
        {parameters_job_with(more_layers), "688 KiB are needed there"}}) {
    const Finished r = run_program("unshare", {"-rm", "sh", script, job, swap_});
    if (r.exit_code == 77 || r.err.find("unshare") != std::string::npos)
      GTEST_SKIP() << "nothing can be mounted here: " << r.err;
    EXPECT_EQ(r.exit_code, 5) << r.err;
    EXPECT_THAT(r.err, AllOf(HasSubstr(swap_), HasSubstr(needed), HasSubstr("are free")));
    EXPECT_THAT(r.out, Not(HasSubstr("step ")));
  }
}

TEST_F(Nvme, limit_of_files_is_said_before_the_first_step) {
  const std::string script = folder_.file("limit.sh", "ulimit -f 100\n" SHARDPLAN_VALIDATE " $1\n");
  const Finished r = run_program("bash", {script, job_with([](Json&) {})});
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(r.err, AllOf(HasSubstr(swap_), HasSubstr("ulimit -f"), HasSubstr(kStates)));
}

TEST_F(Nvme, file_that_breaks_off_ends_all_ranks) {
  const auto endless = [](Json& j) { j["run"]["steps"] = 1000000; };
  // /proc has the files without names of the process: one of them loses its end.
  const std::string script =
      folder_.file("cut.sh", SHARDPLAN_VALIDATE
                   " $1 > $2 &\nuntil grep -qs 'step     2' $2; do sleep 0.1; done\n"
                   "for f in /proc/$!/fd/*; do\n"
                   "  case $(readlink $f) in */swap/*deleted*) break ;; esac\ndone\n"
                   // A write that is under way gives it a new one: again, while the process has it.
                   "while : > $f; do sleep 0.02; done 2> /dev/null\nwait $!\n");
  for (const std::string& job : {job_with(endless), parameters_job_with(endless)}) {
    std::filesystem::remove(folder_.path("log"));
    const Finished r = run_program("bash", {script, job, folder_.path("log")});
    EXPECT_EQ(r.exit_code, 5) << r.err;
    EXPECT_THAT(r.err, AllOf(HasSubstr(swap_), HasSubstr("the file ends there")));
  }
}

TEST_F(Nvme, killed_rank_leaves_no_file_and_no_room_taken) {
  const auto endless = [](Json& j) { j["run"]["steps"] = 1000000; };
  const std::string script = folder_.file(
      "kill.sh", SHARDPLAN_VALIDATE
      " $1 > $2 &\nuntil grep -qs 'step ' $2; do sleep 0.1; done\n"
      "ls -l /proc/$!/fd | grep -c '/swap/.*deleted'\nls -A $3\nkill -9 $!\nwait $!\nls -A $3\n");
  for (const std::string& job : {job_with(endless), parameters_job_with(endless)}) {
    std::filesystem::remove(folder_.path("log"));
    const Finished r = run_program("bash", {script, job, folder_.path("log"), swap_});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out, "4\n");  // a file a rank while it ran, and none that has a name
  }
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
