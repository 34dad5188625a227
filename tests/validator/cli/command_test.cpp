// shardplan-validate as a user runs it.
#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "load/hardware.h"
#include "load/record.h"
#include "support/subprocess.h"

namespace shardplan::validator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kJob = std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json";

class Validate : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string job_with(const std::function<void(Json&)>& change) const {
    Json job = read_json_file(kJob);
    job["run"]["steps"] = 2;
    job["run"]["warmup"] = 1;
    change(job);
    return folder_.file("job.json", job.dump());
  }
  static Finished run(const std::vector<std::string>& arguments) {
    return run_program(SHARDPLAN_VALIDATE, arguments);
  }
  TemporaryFolder folder_;
};

TEST_F(Validate, lowers_the_loss_on_real_text_and_predicts_every_byte) {
  const Finished r = run({kJob, "--format", "json", "--record", path("r.json")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json out = Json::parse(r.out);
  const Json& steps = out.at("record").at("steps");
  EXPECT_GT(steps.front().at("loss").get<double>(), 5.4);  // ln 256 = 5.55
  EXPECT_LT(steps.back().at("loss").get<double>(), steps.front().at("loss").get<double>() - 1);
  for (const auto& [name, row] : out.at("categories").items()) {
    EXPECT_EQ(row.at("predicted"), row.at("measured")) << name;
    EXPECT_EQ(row.at("dry_run"), row.at("measured")) << name;
  }
  EXPECT_EQ(out.at("peak").at("predicted"), out.at("peak").at("measured"));

  const RecordList records = load_records({path("r.json")}, load_hardware_catalog());
  ASSERT_EQ(records.records.size(), 1U)
      << (records.bad.empty() ? std::string() : records.bad[0].message.text);
  EXPECT_EQ(records.records[0].measured[index_of(Figure::allocated_peak)],
            out.at("peak").at("measured").get<double>());
}

/// The last step's loss of a run whose bytes are all as predicted.
double loss_of_predicted(const Finished& run) {
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json out = Json::parse(run.out);
  EXPECT_EQ(out.at("peak").at("predicted"), out.at("peak").at("measured"));
  for (const auto& [name, row] : out.at("phases").items())
    EXPECT_EQ(row.at("predicted"), row.at("measured")) << name;
  return out.at("record").at("steps").back().at("loss").get<double>();
}

TEST_F(Validate, shares_layers_among_ranks_and_predicts_every_byte) {
  const auto last_loss = [&](std::int64_t tensor) {
    const Finished r = run({job_with([&](Json& j) {
                              j["parallel"]["tensor"] = tensor;
                              // As many samples a step, whoever has them.
                              j["workload"]["gradient_accumulation"] = 2 * tensor;
                              j["precision"] = "fp32";
                            }),
                            "--format", "json"});
    return loss_of_predicted(r);
  };
  const double whole = last_loss(1);
  for (const std::int64_t tensor : {2, 4}) EXPECT_NEAR(last_loss(tensor), whole, 1e-6 * whole);
}

TEST_F(Validate, shares_sequences_among_ranks_and_predicts_every_byte) {
  const auto last_loss = [&](const char* parallel, std::int64_t samples, int stage) {
    const Finished r = run({job_with([&](Json& j) {
                              j["parallel"] = Json::parse(parallel);
                              j["framework"]["zero_stage"] = stage;
                              // As many samples a step, whoever has them.
                              j["workload"]["gradient_accumulation"] = samples;
                              j["precision"] = "fp32";
                            }),
                            "--format", "json"});
    return loss_of_predicted(r);
  };
  const double whole = last_loss("{}", 2, 1);
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_NEAR(last_loss(R"({"context": 2})", 4, stage), whole, 1e-6 * whole) << stage;
    EXPECT_NEAR(last_loss(R"({"context": 4})", 8, stage), whole, 1e-6 * whole) << stage;
  }
  EXPECT_NEAR(last_loss(R"({"context": 2, "tensor": 2})", 8, 1), whole, 1e-6 * whole);
}

TEST_F(Validate, names_the_framework_that_is_not_its_own_whatever_device_is_asked_for) {
  const std::string job = job_with([](Json& j) { j["framework"] = Json{{"name", "deepspeed"}}; });
  for (const char* device : {"host", "cuda"}) {
    const Finished r = run({job, "--device", device});
    EXPECT_EQ(r.exit_code, 3);
    EXPECT_NE(r.err.find("framework.name"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("expected native"), std::string::npos) << r.err;
  }
}

TEST_F(Validate, names_the_ring_that_cannot_be_and_exits_3) {
  const auto refused = [&](const std::function<void(Json&)>& change) {
    const Finished r = run({job_with([&](Json& j) {
      j["parallel"]["context"] = 4;
      change(j);
    })});
    EXPECT_EQ(r.exit_code, 3) << r.out;
    return r.err;
  };
  EXPECT_THAT(refused([](Json& j) { j["workload"]["sequence_length"] = 60; }),
              AllOf(HasSubstr("parallel.context: 8 does not divide the 60 tokens"),
                    HasSubstr("expected 2")));
  EXPECT_THAT(refused([](Json& j) { j["parallel"]["context"] = 3; }),
              HasSubstr("parallel.context: 3 does not divide the 4 GPUs"));
  EXPECT_THAT(refused([](Json& j) {
                j["model"] = {{"mlp", {8, 8, 8}}};
                j["workload"]["sequence_length"] = 8;
              }),
              HasSubstr("parallel.context"));
  EXPECT_THAT(refused([](Json& j) { j["parallel"]["tensor"] = 2; }), HasSubstr("multiply to 8"));
  EXPECT_THAT(refused([](Json& j) { j["parallel"]["sequence"] = 2; }),
              HasSubstr("parallel.sequence"));
}

TEST_F(Validate, runs_stages_of_a_pipeline_and_predicts_every_byte) {
  const auto last_loss = [&](const char* parallel, std::int64_t accumulation) {
    const Finished r = run({job_with([&](Json& j) {
                              j["parallel"] = Json::parse(parallel);
                              j["framework"]["zero_stage"] = 1;
                              j["model"]["n_layer"] = 4;
                              j["workload"]["gradient_accumulation"] = accumulation;
                              j["workload"]["micro_batch"] = 1;
                              j["precision"] = "fp32";
                            }),
                            "--format", "json"});
    return loss_of_predicted(r);
  };
  const double whole = last_loss("{}", 2);
  for (const char* parallel :
       {R"({"pipeline": 2})", R"({"pipeline": 2, "schedule": "gpipe"})",
        R"({"pipeline": 2, "virtual_pipeline": 2, "schedule": "interleaved"})"})
    EXPECT_NEAR(last_loss(parallel, 4), whole, 1e-6 * whole) << parallel;
  EXPECT_NEAR(last_loss(R"({"pipeline": 4})", 8), whole, 1e-6 * whole);
  EXPECT_NEAR(last_loss(R"({"pipeline": 2, "tensor": 2})", 8), whole, 1e-6 * whole);
}

TEST_F(Validate, names_the_pipeline_that_cannot_be_and_exits_3) {
  const auto refused = [&](const char* parallel, const std::function<void(Json&)>& change) {
    const Finished r = run({job_with([&](Json& j) {
      j["parallel"] = Json::parse(parallel);
      j["framework"]["zero_stage"] = 1;
      j["model"]["n_layer"] = 4;
      j["workload"]["gradient_accumulation"] = 4;
      change(j);
    })});
    EXPECT_EQ(r.exit_code, 3) << r.out;
    return r.err;
  };
  const auto as_it_is = [](Json&) {};
  constexpr const char* kTwo = R"({"pipeline": 2})";
  EXPECT_THAT(refused(kTwo, [](Json& j) { j["model"]["n_layer"] = 3; }),
              HasSubstr("2 stages do not divide the 3 blocks"));
  EXPECT_THAT(refused(R"({"pipeline": 4})", [](Json& j) { j["model"]["n_layer"] = 2; }),
              HasSubstr("2 blocks are fewer than 4 stages"));
  for (const int zero : {2, 3})
    EXPECT_THAT(refused(kTwo, [&](Json& j) { j["framework"]["zero_stage"] = zero; }),
                HasSubstr("framework.zero_stage"));
  EXPECT_THAT(refused(kTwo, [](Json& j) { j["framework"]["offload_optimizer"] = "cpu"; }),
              HasSubstr("framework.offload_optimizer"));
  EXPECT_THAT(refused(kTwo,
                      [](Json& j) {
                        j["model"] = {{"mlp", {8, 8, 8}}};
                      }),
              HasSubstr("parallel.pipeline"));
  EXPECT_THAT(refused(R"({"pipeline": 2, "stage_layers": [1, 3]})", as_it_is),
              HasSubstr("parallel.stage_layers"));
  EXPECT_THAT(refused(R"({"pipeline": 2, "balance": "parameters"})", as_it_is),
              HasSubstr("parallel.balance"));
  EXPECT_THAT(refused(R"({"pipeline": 2, "virtual_pipeline": 2, "schedule": "zbv"})", as_it_is),
              HasSubstr("native has no schedule zbv"));
  EXPECT_THAT(refused(R"({"pipeline": 4, "virtual_pipeline": 2})", as_it_is),
              HasSubstr("8 stages"));
}

TEST_F(Validate, says_what_does_not_fit_and_exits_5) {
  const Finished r = run({kJob, "--memory-limit", "1500000"});
  EXPECT_EQ(r.exit_code, 5);
  EXPECT_THAT(r.err, HasSubstr("out of memory: no room for "));
  EXPECT_THAT(r.err, HasSubstr("blocks.*.parameters × 3"));
}

TEST_F(Validate, names_what_the_engine_cannot_do_and_exits_3) {
  const auto refused = [&](const std::function<void(Json&)>& change) {
    const Finished r = run({job_with(change)});
    EXPECT_EQ(r.exit_code, 3) << r.out;
    return r.err;
  };
  EXPECT_THAT(refused([](Json& j) { j["model"] = "t5-base"; }), HasSubstr("cannot run 't5'"));
  EXPECT_THAT(refused([](Json& j) { j["optimizer"] = "lion"; }), HasSubstr("optimizer"));
  EXPECT_THAT(refused([](Json& j) { j["precision"] = "bf16-autocast"; }), HasSubstr("autocast"));
  EXPECT_THAT(refused([](Json& j) { j["framework"] = "fsdp2"; }), HasSubstr("framework.name"));
  EXPECT_THAT(refused([](Json& j) { j["run"]["scheduler"]["type"] = "WarmupLRR"; }),
              HasSubstr("did you mean 'WarmupLR'"));
  EXPECT_THAT(refused([](Json& j) {
                j["parallel"]["tensor"] = 2;
                j["parallel"]["sequence_parallel"] = false;
              }),
              HasSubstr("parallel.sequence_parallel"));
  EXPECT_THAT(refused([](Json& j) { j["parallel"]["pipeline"] = 2; }),
              HasSubstr("parallel.pipeline"));
  EXPECT_THAT(refused([](Json& j) { j["run"]["data"] = "/nowhere/tokens.bin"; }),
              HasSubstr("/nowhere/tokens.bin: run.data: cannot be read"));
  EXPECT_THAT(refused([](Json& j) { j["workload"]["sequence_length"] = 65; }),
              HasSubstr("n_positions"));
}

TEST_F(Validate, keeps_states_on_the_host_and_predicts_every_byte_there) {
  const auto losses = [&](const std::function<void(Json&)>& change) {
    const Finished r = run({job_with(change), "--format", "json"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const Json out = Json::parse(r.out);
    if (out.contains("host"))
      for (const auto& [name, row] : out.at("host").items()) {
        EXPECT_EQ(row.at("predicted"), row.at("measured")) << name;
        EXPECT_EQ(row.at("dry_run"), row.at("measured")) << name;
      }
    EXPECT_EQ(out.at("peak").at("predicted"), out.at("peak").at("measured"));
    return out.at("record").at("steps").back().at("loss").get<double>();
  };
  const double here = losses([](Json& j) { j["framework"]["zero_stage"] = 3; });
  EXPECT_EQ(here, losses([](Json& j) {
              j["framework"]["zero_stage"] = 3;
              j["framework"]["offload_optimizer"] = "cpu";
              j["framework"]["offload_param"] = "cpu";
            }));
}

TEST_F(Validate, names_the_offload_that_cannot_be_and_exits_3) {
  const auto refused = [&](const std::function<void(Json&)>& change) {
    const Finished r = run({job_with([&](Json& j) { change(j["framework"]); })});
    EXPECT_EQ(r.exit_code, 3) << r.out;
    return r.err;
  };
  EXPECT_THAT(refused([](Json& f) { f["offload_optimizer"] = "cpus"; }),
              HasSubstr("framework.offload_optimizer"));
  EXPECT_THAT(refused([](Json& f) {
                f["zero_stage"] = 3;
                f["offload_param"] = "nvme";
              }),
              HasSubstr("framework.offload_param"));
  EXPECT_THAT(refused([](Json& f) {
                f["zero_stage"] = 3;
                f["offload_optimizer"] = "cpu";
                f["offload_param"] = "nvme";
              }),
              AllOf(HasSubstr("run.nvme.path"), HasSubstr("--nvme-path")));
  EXPECT_THAT(refused([](Json& f) { f["offload_optimizer"] = "nvme"; }),
              AllOf(HasSubstr("run.nvme.path"), HasSubstr("--nvme-path")));
  EXPECT_THAT(refused([](Json& f) { f["offload_param"] = "cpu"; }),
              HasSubstr("framework.offload_param"));
  EXPECT_THAT(refused([](Json& f) { f["delayed_update"] = true; }),
              HasSubstr("framework.delayed_update"));
}

TEST_F(Validate, says_that_the_host_has_too_little_memory_and_exits_5) {
  const Finished r = run({job_with([](Json& j) { j["framework"]["offload_optimizer"] = "cpu"; }),
                          "--host-memory-limit", "100000"});
  EXPECT_EQ(r.exit_code, 5);
  EXPECT_THAT(r.err, HasSubstr("out of memory: each rank needs"));
  EXPECT_THAT(r.err, HasSubstr("of its host"));
}

TEST_F(Validate, refuses_a_folder_that_it_cannot_write_to_before_it_trains) {
  const Finished r = run({kJob, "--steps", "2", "--record", "/proc/nothing/r.json"});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_THAT(r.err, HasSubstr("/proc/nothing/r.json: cannot be written"));
  EXPECT_THAT(r.out, ::testing::Not(HasSubstr("step")));
}

/// The events of a run, one a line.
std::vector<Json> events_of(const Finished& run) {
  std::vector<Json> events;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) events.push_back(Json::parse(line));
  return events;
}

TEST_F(Validate, tells_a_program_what_happens_at_every_step) {
  const Finished r = run({job_with([](Json& j) { j["run"]["steps"] = 12; }), "--progress", "json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::vector<Json> events = events_of(r);
  ASSERT_EQ(events.size(), 14U);  // also those between ten and twelve, which people are not shown
  EXPECT_EQ(events.front().at("event"), "start");
  EXPECT_EQ(events.front().at("ranks"), 4);
  EXPECT_FALSE(events.front().at("predicted").contains("step_seconds"));  // nothing is of a CPU
  const Json& done = events.back();
  EXPECT_EQ(done.at("event"), "done");
  for (std::size_t i = 1; i <= 12; ++i) {
    EXPECT_EQ(events[i].at("event"), "step");
    EXPECT_EQ(events[i].at("step"), i);
    EXPECT_EQ(events[i].at("steps"), 12);
    EXPECT_EQ(events[i].at("loss"), done.at("record").at("steps").at(i - 1).at("loss"));
    EXPECT_GT(events[i].at("seconds").get<double>(), 0);
    EXPECT_EQ(events[i].at("allocated_peak"), events.front().at("predicted").at("allocated_peak"));
    EXPECT_LE(events[i].at("allocated"), events[i].at("allocated_peak"));
  }
  EXPECT_EQ(done.at("peak").at("measured"), events[12].at("allocated_peak"));
}

TEST_F(Validate, tells_a_program_why_a_run_ended) {
  const Finished r = run({job_with([](Json& j) {
                            j["optimizer"]["lr"] = 1e38;
                            j["run"]["scheduler"] = nullptr;
                            j["run"]["steps"] = 20;
                          }),
                          "--progress", "json"});
  EXPECT_EQ(r.exit_code, 6);
  const std::vector<Json> events = events_of(r);
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.back().at("event"), "error");
  EXPECT_EQ(events.back().at("exit_code"), 6);
  EXPECT_THAT(events.back().at("message").get<std::string>(), HasSubstr("the loss is"));
}

TEST_F(Validate, tells_a_program_of_a_dry_run_without_steps) {
  const std::vector<Json> events = events_of(run({kJob, "--dry-run", "--progress", "json"}));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events.back().at("peak").at("predicted"), events.back().at("peak").at("dry_run"));
  EXPECT_FALSE(events.back().contains("record"));
}

TEST_F(Validate, stops_when_the_loss_is_not_a_number) {
  const Finished r = run({job_with([](Json& j) {
    j["optimizer"]["lr"] = 1e38;
    j["run"]["scheduler"] = nullptr;
    j["run"]["steps"] = 20;
  })});
  EXPECT_EQ(r.exit_code, 6);
  EXPECT_THAT(r.err, HasSubstr("the loss is"));
}

TEST_F(Validate, asks_for_the_gpus_that_the_job_needs) {
  const Finished r = run({kJob, "--device", "cuda", "--steps", "2"});
  if (r.exit_code == 0) GTEST_SKIP() << "there are GPUs here";
  EXPECT_EQ(r.exit_code, 5);
  EXPECT_THAT(r.err, HasSubstr("the job asks for 4 GPUs on this host"));
}

TEST_F(Validate, runs_as_one_process_a_rank_and_ends_when_one_is_killed) {
  // $1: the job; $2: "kill" ends rank 3 once the first steps are done. Rank 0's exit code, or 99 if
  // that takes more than 30 seconds.
  const std::string script = folder_.file(
      "launch.sh",
      "cd $(dirname $0); export WORLD_SIZE=4 MASTER_PORT=$((20000 + $$ % 10000)); rm -f log "
      "killed\n"
      "for rank in 1 2 3; do RANK=$rank " SHARDPLAN_VALIDATE
      " $1 --quiet & done\n"
      "last=$!\n"
      "if [ -n \"$2\" ]; then\n"
      "  { until grep -qs 'step ' log; do sleep 0.1; done; date +%s > killed; kill -9 $last; } &\n"
      "fi\n"
      "RANK=0 " SHARDPLAN_VALIDATE
      " $1 > log\n"
      "code=$?\nwait\ncat log\n"
      "[ -s killed ] && [ $(($(date +%s) - $(cat killed))) -gt 30 ] && exit 99\n"
      "exit $code\n");
  for (const char* parallel : {R"({})", R"({"tensor": 2})", R"({"context": 4})",
                               R"({"pipeline": 2, "virtual_pipeline": 2})"}) {
    const auto job = [&](std::int64_t steps) {
      return job_with([&](Json& j) {
        j["parallel"] = Json::parse(parallel);
        j["framework"]["zero_stage"] = 1;
        j["model"]["n_layer"] = 4;
        j["workload"]["gradient_accumulation"] = 2;
        j["run"]["steps"] = steps;
      });
    };
    const Finished good = run_program("bash", {script, job(2)});
    EXPECT_EQ(good.exit_code, 0) << good.err;
    EXPECT_THAT(good.out, HasSubstr("step     2"));
    const Finished killed = run_program("bash", {script, job(1000000), "kill"});
    EXPECT_EQ(killed.exit_code, 5) << killed.err;
    EXPECT_THAT(killed.err, HasSubstr("rank 3 on "));
    EXPECT_THAT(killed.err, HasSubstr("is lost: its process ended (step "));
  }
}

}  // namespace
}  // namespace shardplan::validator
