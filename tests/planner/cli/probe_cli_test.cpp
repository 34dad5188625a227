// `shardplan probe`, and the questions that take what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "load/calibration.h"
#include "support/subprocess.h"

namespace shardplan::probe_cli_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Finished shardplan(const std::vector<std::string>& arguments) {
  return run_program(SHARDPLAN_PROGRAM, arguments);
}

/// An interpreter that prints this, whatever it is asked to run.
std::string interpreter(const TemporaryFolder& folder, const std::string& printed,
                        const std::string& exit = "0") {
  const std::string path =
      folder.file("python", "#!/bin/sh\ncat <<'END'\n" + printed + "\nEND\nexit " + exit + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

std::string machine(double python_call) {
  return Json{{"schema", "shardplan.machine/1"}, {"python_call_seconds", python_call}}.dump();
}

double step_seconds(const std::vector<std::string>& more) {
  std::vector<std::string> asked{"estimate", "--model",     "llama-3.2-1b", "--cluster",
                                 "2xH200",   "--framework", "fsdp2",        "--micro-batch",
                                 "1",        "--format",    "json"};
  asked.insert(asked.end(), more.begin(), more.end());
  const Finished f = shardplan(asked);
  EXPECT_EQ(f.exit_code, 0) << f.err;
  return parse_json(f.out, "stdout")["time"]["step_seconds"].get<double>();
}

TEST(Probe, MeasuresThisMachineWithItsPython) {
  if (shardplan({"probe", "--format", "json"}).exit_code == 3) GTEST_SKIP() << "no python3";
  const TemporaryFolder folder;
  const Finished f = shardplan({"probe", "-o", folder.path("probe.json")});
  ASSERT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("a Python call"), HasSubstr("host memory")));
  const Json json = read_json_file(folder.path("probe.json"));
  EXPECT_EQ(json["schema"], "shardplan.machine/1");
  EXPECT_GT(json["python_call_seconds"].get<double>(), 1e-8);
  EXPECT_LT(json["python_call_seconds"].get<double>(), 1e-3);
  EXPECT_LE(json["python_call_seconds_least"], json["python_call_seconds"]);
  EXPECT_GT(json["memory_bytes_per_second"].get<double>(), 1e8);
  EXPECT_GE(json["cpus"].get<int>(), 1);
  EXPECT_GT(step_seconds({"--machine", folder.path("probe.json")}), 0);
}

TEST(Probe, SaysWhyItKnowsNothingOfAGpu) {
  const TemporaryFolder folder;
  const std::string python = interpreter(
      folder, "{\n\"python_call_seconds\": 2e-6, \"gpu\": null, \"gpu_unknown\": \"no driver\"}");
  const Finished f = shardplan({"probe", "--python", python});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("2.00 µs"), HasSubstr("unknown: no driver"),
                           Not(HasSubstr("something else was running"))));
}

TEST(Probe, SaysThatTheMachineWasBusy) {
  const TemporaryFolder folder;
  const std::string python =
      interpreter(folder, "{\n\"python_call_seconds\": 2e-6, \"python_call_seconds_least\": 1e-6}");
  EXPECT_THAT(shardplan({"probe", "--python", python}).out,
              HasSubstr("something else was running here"));
}

TEST(Probe, RefusesAnInterpreterThatDoesNotMeasure) {
  const TemporaryFolder folder;
  const Finished none = shardplan({"probe", "--python", folder.path("none")});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, AllOf(HasSubstr("cannot be run"), HasSubstr("--python PATH")));
  const Finished failed =
      shardplan({"probe", "--python", interpreter(folder, "SyntaxError: old", "1")});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.err, HasSubstr("SyntaxError: old"));
  const Finished other = shardplan({"probe", "--python", interpreter(folder, "hello")});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("hello"));
}

/// Without a machine the host is the usual one, and quick calls of Python alone leave it.
TEST(MachineOption, MakesASlowHostsStepLonger) {
  const TemporaryFolder folder;
  const double own = load_calibration().host.value().python_call_seconds;
  const double here = step_seconds({});
  const double fitted = step_seconds({"--machine", folder.file("same.json", machine(own))});
  EXPECT_EQ(fitted, here);
  EXPECT_GT(step_seconds({"--machine", folder.file("slow.json", machine(4 * own))}), 1.2 * here);
  Json quick = Json::parse(machine(own));
  quick["block_seconds"] = 1.4e-3;
  EXPECT_LT(step_seconds({"--machine", folder.file("quick.json", quick.dump())}), 0.9 * here);
}

TEST(MachineOption, RefusesWhatIsNoMachineFile) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text) {
    const Finished f =
        shardplan({"fit", "gpt2", "1xH100", "--machine", folder.file("m.json", text)});
    EXPECT_EQ(f.exit_code, 3);
    return f.err;
  };
  EXPECT_THAT(refused("{}"), HasSubstr("python_call_seconds"));
  EXPECT_THAT(refused(R"({"python_call_seconds": 0})"), HasSubstr("python_call_seconds"));
  EXPECT_THAT(refused(R"({"python_call_second": 1e-6})"), HasSubstr("python_call_seconds"));
  EXPECT_THAT(refused(R"({"schema": "shardplan.job/1"})"), HasSubstr("shardplan.machine/1"));
}

TEST(MachineOption, NeedsACalibrationThatKnowsItsOwnHost) {
  const TemporaryFolder folder;
  Json calibration = built_in_calibration();
  calibration.erase("machine");
  const Finished f = shardplan({"fit", "gpt2", "1xH100", "--calibration",
                                folder.file("c.json", calibration.dump()), "--machine",
                                folder.file("m.json", machine(1e-6))});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_THAT(f.err, AllOf(HasSubstr("c.json"), HasSubstr("what its own host takes")));
}

}  // namespace
}  // namespace shardplan::probe_cli_test
