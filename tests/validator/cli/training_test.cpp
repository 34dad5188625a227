// The engine against PyTorch: the same first weights, the same text, the same losses. What PyTorch
// gave was recorded once (tests/accuracy/measure/compare_training.py); the host back end repeats
// it.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::validator {
namespace {

struct Case {
  std::string model;  ///< "gpt2": its record, and its weights under tests/golden/training
  int zero_stage = 0;
  int ranks = 1;  ///< share the record's micro-batch
};

class Training : public ::testing::TestWithParam<Case> {};

TEST_P(Training, loses_what_PyTorch_loses) {
  const Case& c = GetParam();
  const std::string sources = SHARDPLAN_SOURCE_DIR;
  const Json record = read_json_file(sources + "/data/measurements/losses/h200-1x-training-tiny-" +
                                     c.model + "-fp32.json");
  Json job = record.at("job");
  job["cluster"] = std::to_string(c.ranks) + "xH200";
  job["framework"]["zero_stage"] = c.zero_stage;
  job["framework"]["device"] = "host";
  job["workload"]["micro_batch"] = job["workload"]["micro_batch"].get<int>() / c.ranks;
  job["run"]["weights"] = sources + "/tests/golden/training/tiny-" + c.model + ".safetensors";
  const TemporaryFolder folder;
  const Finished run =
      run_program(SHARDPLAN_VALIDATE, {folder.file("job.json", job.dump()), "--format", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;

  const Json steps = Json::parse(run.out).at("record").at("steps");
  const Json& losses = record.at("losses").at("pytorch");
  ASSERT_EQ(steps.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double pytorch = losses[i].get<double>();
    EXPECT_NEAR(steps[i].at("loss").get<double>() / pytorch, 1.0, 2e-6) << "step " << i;
  }
  EXPECT_LT(losses.back().get<double>(), losses.front().get<double>() - 0.8);
}

INSTANTIATE_TEST_SUITE_P(Models, Training,
                         ::testing::Values(Case{"gpt2"}, Case{"qwen2"}, Case{"qwen3"},
                                           Case{"gpt2", 2, 2}, Case{"qwen2", 3, 4},
                                           Case{"qwen3", 1, 4}),
                         [](const auto& tested) {
                           return tested.param.model + "_stage" +
                                  std::to_string(tested.param.zero_stage) + "_on" +
                                  std::to_string(tested.param.ranks);
                         });

}  // namespace
}  // namespace shardplan::validator
