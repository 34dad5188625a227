// Our own engine's runs of ranks that share one GPU, all predicted before they ran: bytes, and
// losses that do not depend on how a network is divided.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "peak_errors.h"

namespace shardplan::native_one_gpu_test {
namespace {

constexpr std::size_t kRecords = 33;

TEST(NativeOnOneGpu, AllocatesWhatWasPredictedToTheByte) {
  const RecordList list = records_asked_for({"native_one_gpu"});
  ASSERT_TRUE(list.bad.empty());
  PeakErrors errors;
  for (const Record& r : list.records) errors.add(r);
  expect_within(errors, kRecords, 0, 0);
}

/// By model, the losses of the runs that were given the same samples.
std::map<std::string, std::vector<std::vector<double>>> same_samples() {
  std::map<std::string, std::vector<std::vector<double>>> losses;
  for (const auto& [name, file] : record_files()) {
    if (!name.starts_with("h100-") || !name.ends_with("-same")) continue;
    const Json record = read_json_file(file);
    std::vector<double> series;
    for (const Json& step : record.at("steps")) series.push_back(step.at("loss").get<double>());
    const bool gpt2 = name.find("gpt2") != std::string::npos;
    losses[gpt2 ? "gpt2" : "qwen3"].push_back(std::move(series));
  }
  return losses;
}

TEST(NativeOnOneGpu, LearnsTheSameHoweverANetworkIsDivided) {
  const auto losses = same_samples();
  ASSERT_EQ(losses.size(), 2U);
  for (const auto& [model, runs] : losses) {
    ASSERT_GE(runs.size(), 4U) << model;
    for (const std::vector<double>& run : runs) {
      ASSERT_EQ(run.size(), runs.front().size());
      for (std::size_t i = 0; i < run.size(); ++i)
        EXPECT_NEAR(run[i], runs.front()[i], 1e-5 * run[i]) << model << ", step " << i + 1;
    }
  }
}

}  // namespace
}  // namespace shardplan::native_one_gpu_test
