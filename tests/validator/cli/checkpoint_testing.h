// Runs that save checkpoints and go on from them.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::validator::checkpoint_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

using Change = std::function<void(Json&)>;

class ValidateSaves : public ::testing::Test {
 protected:
  static constexpr int kSteps = 6;

  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string job_with(const Change& change) const {
    Json job =
        read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/gpt2-tiny-native.json");
    job["model"]["n_layer"] = 2;
    job["cluster"] = "2xA100-40GB";
    job["workload"]["micro_batch"] = 1;
    job["workload"]["sequence_length"] = 16;
    job["run"]["steps"] = kSteps;
    job["run"]["warmup"] = 1;
    job["run"]["scheduler"]["params"]["warmup_num_steps"] = 4;
    change(job);
    return folder_.file("job.json", job.dump());
  }
  static Finished run(std::vector<std::string> arguments, std::vector<std::string> more = {}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(SHARDPLAN_VALIDATE, arguments);
  }
  /// What a program is told of a run that goes well, with every byte as predicted.
  static Json told(const std::string& job, const std::vector<std::string>& more) {
    const Finished r = run({job, "--format", "json"}, more);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    if (r.exit_code != 0) return {};
    const Json out = Json::parse(r.out);
    for (const auto& [name, row] : out.at("phases").items()) {
      EXPECT_EQ(row.at("predicted"), row.at("measured")) << name;
      EXPECT_EQ(row.at("dry_run"), row.at("measured")) << name;
    }
    if (!out.contains("host")) return out;
    for (const auto& [name, row] : out.at("host").items())
      EXPECT_EQ(row.at("predicted"), row.at("measured")) << name;
    return out;
  }
  /// All that a step says but its seconds.
  static Json steps_of(const Json& told) {
    Json steps = told.at("record").at("steps");
    for (Json& step : steps) step.erase("seconds");
    return steps;
  }
  /// A checkpoint after three of six steps, in "a"; the whole run's steps.
  Json save_half(const std::string& job) const {
    fs::remove_all(path("a"));
    const Json out = told(job, {"--save", path("a"), "--save-every", "3"});
    return out.is_null() ? Json() : steps_of(out);
  }
  /// What goes on from there loses what the whole run lost, and ends with the same files.
  void expect_same_bits(const std::string& job, const std::string& what) const {
    const Json all = save_half(job);
    fs::remove_all(path("b"));
    const Json out = told(job, {"--resume", path("a") + "/step-3", "--save", path("b")});
    ASSERT_TRUE(all.is_array() && out.is_object()) << what;
    const Json rest = steps_of(out);
    ASSERT_EQ(rest.size(), 3U) << what;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rest[i], all.at(3 + i)) << what << ", " << i;
    EXPECT_EQ(out.at("record").at("measured").at("first_step"), 3) << what;
    std::int64_t files = 0;
    for (const auto& entry : fs::directory_iterator(path("a") + "/step-6")) {
      const std::string name = entry.path().filename().string();
      EXPECT_EQ(text_of(entry.path().string()), text_of(path("b") + "/step-6/" + name))
          << what << ": " << name;
      ++files;
    }
    EXPECT_EQ(files, std::ssize(out.at("record").at("ranks")) + 1) << what;
  }
  /// The message of a run that does not go on from "a".
  std::string refusal(const Change& change, const std::vector<std::string>& more = {}) const {
    const Finished r = run({job_with(change), "--resume", path("a")}, more);
    EXPECT_EQ(r.exit_code, 3) << r.out << r.err;
    EXPECT_THAT(r.out, Not(HasSubstr("step  ")));
    return r.err;
  }

  TemporaryFolder folder_;
};

inline void no_change(Json&) {}

inline Change at_stage(int stage, const char* precision) {
  return [=](Json& j) {
    j["framework"]["zero_stage"] = stage;
    j["precision"] = precision;
    j["workload"]["gradient_accumulation"] = 2;
  };
}

}  // namespace shardplan::validator::checkpoint_test
