// Memory that Megatron-LM's own tests print (data/published/megatron_ci.json), against what is
// predicted for the same arguments. No constant was fitted to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "estimate/estimate.h"
#include "import/import.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::published_megatron_ci_test {
namespace {

/// "8xH100-80GB"; a node of GB200 has four.
std::string cluster_of(const Json& row) {
  const std::string gpu = row.at("gpu");
  const auto gpus = row.at("gpus").get<std::int64_t>();
  if (gpu != "GB200") return std::to_string(gpus) + "x" + gpu + "-80GB";
  return gpus <= 4 ? std::to_string(gpus) + "xGB200" : std::to_string(gpus / 4) + "x4xGB200";
}

Estimate estimate_of(const Json& row, ReservedMemory reserved) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  const Json file = {{"MODEL_ARGS", row.at("arguments")}};
  const importing::Imported imported = importing::import_documents(
      importing::parse_documents(file.dump(), "published"), "", {{"cluster", cluster_of(row)}});
  const Job job = load_job(imported.job, "published", {&hardware, ""});
  return estimate(job.model, job.plan, calibration, reserved);
}

double predicted_bytes(const Json& row) {
  return static_cast<double>(estimate_of(row, ReservedMemory::ratio).allocated.point);
}

/// What the program describes from Megatron-LM's source alone, and no run of ours has judged.
bool rests_on_reading(const Json& row) {
  const std::string arguments = row.at("arguments").dump();
  return std::ranges::any_of(
      std::array{"--mtp-num-layers", "--use-megatron-fsdp", "muon"},
      [&](const char* word) { return arguments.find(word) != std::string::npos; });
}

/// Their routers stay in 16 bits.
bool has_experts_in_fp8(const Json& row) {
  const std::string arguments = row.at("arguments").dump();
  return arguments.find("--fp8-format") != std::string::npos &&
         arguments.find("--num-experts") != std::string::npos;
}

struct Errors {
  std::vector<double> of_gpu;
  std::vector<double> narrow;  ///< of rows with experts in fp8
  std::vector<double> read;    ///< of rows that rest on reading
  int refused = 0;
};

/// Predicted over printed, minus one, by GPU.
const std::map<std::string, Errors>& errors() {
  static const auto all = [] {
    std::map<std::string, Errors> found;
    const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/megatron_ci.json");
    for (const Json& row : table.at("rows")) {
      Errors& e = found[row.at("gpu")];
      try {
        std::vector<double>& of = has_experts_in_fp8(row) ? e.narrow
                                  : rests_on_reading(row) ? e.read
                                                          : e.of_gpu;
        of.push_back(predicted_bytes(row) / row.at("allocated_peak_bytes").get<double>() - 1);
      } catch (const InputError&) {
        ++e.refused;
      }
    }
    return found;
  }();
  return all;
}

/// `count` rows whose errors are at most `mean` in the mean and at least `least`.
void expect_within(const std::string& gpu, std::size_t count, double mean, double least) {
  const std::vector<double>& e = errors().at(gpu).of_gpu;
  EXPECT_EQ(e.size(), count) << gpu;
  double sum = 0;
  for (const double error : e) sum += std::abs(error);
  EXPECT_LT(sum / static_cast<double>(e.size()), mean) << gpu;
  EXPECT_GT(*std::min_element(e.begin(), e.end()), least) << gpu;
  EXPECT_LT(*std::max_element(e.begin(), e.end()), 0.04) << gpu;
}

TEST(PublishedMegatronCi, MemoryOfH100) {
  expect_within("H100", 13, 0.02, -0.07);
}

TEST(PublishedMegatronCi, MemoryOfGb200) {
  expect_within("GB200", 20, 0.02, -0.035);
}

// Their workspaces of cuBLAS were set to 32 MiB, four times PyTorch's own on this GPU.
TEST(PublishedMegatronCi, MemoryOfA100) {
  expect_within("A100", 15, 0.05, -0.1);
}

// Layers that predict further tokens, Muon and Megatron-FSDP: three of six are 6 to 12 % too low
// (docs/explanation/pipeline.md); why is not known. They may not become worse.
TEST(PublishedMegatronCi, WhatRestsOnReadingIsAMissThatIsKnown) {
  std::vector<double> all;
  for (const auto& [gpu, e] : errors()) all.insert(all.end(), e.read.begin(), e.read.end());
  ASSERT_EQ(all.size(), 6U);
  EXPECT_GT(*std::ranges::min_element(all), -0.118);
  EXPECT_LT(*std::ranges::max_element(all), 0.006);
}

// One run: 4.4 % too high, by the inputs that experts are said to keep in 16 bits.
TEST(PublishedMegatronCi, ExpertsInEightBitsAreNotTooLow) {
  const std::vector<double>& of = errors().at("GB200").narrow;
  ASSERT_EQ(of.size(), 1U);
  EXPECT_GT(of.front(), 0);
  EXPECT_LT(of.front(), 0.05);
}

TEST(PublishedMegatronCi, WhatRestsOnReadingSaysSoAndIsWithinItsBound) {
  int judged = 0;
  const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/megatron_ci.json");
  for (const Json& row : table.at("rows")) {
    if (!rests_on_reading(row)) continue;
    try {
      const Estimate e = estimate_of(row, ReservedMemory::simulated);
      EXPECT_GT(e.reserved.upper, row.at("allocated_peak_bytes").get<std::int64_t>());
      EXPECT_EQ(e.breakdown[index_of(Category::parameters)].source, Source::modelled);
      ++judged;
    } catch (const InputError&) {
    }
  }
  EXPECT_EQ(judged, 7);
}

TEST(PublishedMegatronCi, NoRowIsRefusedUnseen) {
  int refused = 0;
  for (const auto& [gpu, e] : errors()) refused += e.refused;
  EXPECT_EQ(refused, 2) << "experts in fp8 under Megatron-FSDP, hybrid layers";
}

}  // namespace
}  // namespace shardplan::published_megatron_ci_test
