// The engine against PyTorch: the same first weights, the same text, the same losses. What PyTorch
// gave was recorded once (tests/accuracy/measure/native/compare_training.py), on a GPU, or beside the
// weights what it gave on a CPU; the host back end repeats it.
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
  int ranks = 1;    ///< share the record's micro-batch
  int experts = 0;  ///< of them, those that divide the experts of each layer; 0: it has none
  bool sparse() const { return experts > 0; }
};

class Training : public ::testing::TestWithParam<Case> {};

TEST_P(Training, loses_what_PyTorch_loses) {
  const Case& c = GetParam();
  const std::string sources = SHARDPLAN_SOURCE_DIR;
  const std::string weights = sources + "/tests/golden/training/tiny-" + c.model;
  const Json record =
      read_json_file(c.sparse() ? weights + ".json"
                                : sources + "/data/measurements/losses/h200-1x-training-tiny-" +
                                      c.model + "-fp32.json");
  Json job = record.at("job");
  job["cluster"] = std::to_string(c.ranks) + "xH200";
  job["framework"]["zero_stage"] = c.zero_stage;
  job["framework"]["device"] = "host";
  job["workload"]["micro_batch"] = job["workload"]["micro_batch"].get<int>() / c.ranks;
  job["run"]["weights"] = weights + ".safetensors";
  if (c.sparse()) job["parallel"] = {{"expert", c.experts}};
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
  EXPECT_LT(losses.back().get<double>(), losses.front().get<double>() - (c.sparse() ? 0.5 : 0.8));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Training,
    ::testing::Values(Case{"gpt2"}, Case{"qwen2"}, Case{"qwen3"}, Case{"gpt2", 2, 2},
                      Case{"qwen2", 3, 4}, Case{"qwen3", 1, 4}, Case{"mixtral", 0, 1, 1},
                      Case{"qwen3_moe", 0, 1, 1}, Case{"qwen3_moe", 1, 4, 4},
                      Case{"qwen3_moe", 3, 4, 2}),
    [](const auto& tested) {
      return tested.param.model + "_stage" + std::to_string(tested.param.zero_stage) + "_on" +
             std::to_string(tested.param.ranks) +
             (tested.param.experts > 1 ? "_experts" + std::to_string(tested.param.experts) : "");
    });

}  // namespace
}  // namespace shardplan::validator
