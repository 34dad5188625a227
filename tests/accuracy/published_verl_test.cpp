// Jobs of verl's device-tuning table (data/published/verl_tuning.json): each script's settings are
// imported, and what is published as running must not be said not to fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "estimate/rlhf.h"
#include "import/import.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::published_verl_test {
namespace {

const Json& table() {
  static const Json json = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/verl_tuning.json");
  return json;
}

std::string cluster_of(const Json& row) {
  const auto gpus = row.at("gpus").get<int>();
  const auto gpu = row.at("gpu").get<std::string>();
  return gpus > 8 ? std::to_string(gpus / 8) + "x8x" + gpu : std::to_string(gpus) + "x" + gpu;
}

/// With samples as long as those it ran on; an engine is still told the script's limit.
std::string script_of(const Json& row) {
  constexpr const char* kLimit = "actor_rollout_ref.rollout.max_model_len";
  constexpr const char* kPrompt = "data.max_prompt_length";
  constexpr const char* kAnswer = "data.max_response_length";
  Json settings = row.at("settings");
  if (!settings.contains(kLimit))
    settings[kLimit] =
        settings.at(kPrompt).get<std::int64_t>() + settings.at(kAnswer).get<std::int64_t>();
  settings[kPrompt] = table().at("lengths").at("prompt");
  settings[kAnswer] = table().at("lengths").at("answer");
  std::string script = "python3 -m verl.trainer.main_ppo";
  if (row.contains("config_name"))
    script += " --config-name=" + row.at("config_name").get<std::string>();
  for (const auto& [key, value] : settings.items())
    script +=
        " \\\n    " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return script + "\n";
}

Estimate estimate_of(const Json& row) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  const Json flags{{"model", row.at("catalogue")}, {"cluster", cluster_of(row)}};
  Json imported = importing::import_documents(
                      importing::parse_documents(script_of(row), "script.sh"), "", flags)
                      .job;
  imported["model"] = row.at("catalogue");
  const Job job = load_job(imported, "job.json", {.hardware = &hardware, .directory = ""});
  return estimate_rlhf(*job.rlhf, calibration);
}

/// Without what the allocator holds beyond live tensors.
bool fits_without_fragmentation(const Estimate& e) {
  return e.allocated.point + e.device.point - e.reserved.point <= e.usable_bytes;
}

TEST(PublishedVerl, WhatRanIsNotSaidNotToFit) {
  std::size_t judged = 0;
  for (const Json& row : table().at("rows")) {
    const auto script = row.at("script").get<std::string>();
    const Estimate e = estimate_of(row);
    ++judged;
    RecordProperty(script, std::to_string(e.device.point >> 20) + " of " +
                               std::to_string(e.usable_bytes >> 20) + " MiB");
    EXPECT_TRUE(fits_without_fragmentation(e)) << script;
    EXPECT_NE(e.verdict.gpu.fit, Fit::does_not_fit) << script << ": " << e.device.point;
  }
  EXPECT_EQ(judged, 12U);
}

/// With another batch: the scripts take all of it in one pass.
Json with_batch(Json row, std::int64_t of_each_gpu) {
  for (auto& [key, value] : row.at("settings").items())
    if (key.find("batch_size") != std::string::npos)
      value = of_each_gpu * row.at("gpus").get<std::int64_t>();
  return row;
}

// Batches that their authors tried up to the largest that runs.
TEST(PublishedVerl, BatchesThatFailedAreNotSaidToFit) {
  std::size_t ran = 0, failed = 0, denied = 0;
  for (const Json& row : table().at("rows"))
    for (const Json& tried : row.value("tried_per_gpu", Json::array())) {
      const Fit fit = estimate_of(with_batch(row, tried.at(0).get<std::int64_t>())).verdict.gpu.fit;
      const bool runs = tried.at(1).get<bool>();
      ++(runs ? ran : failed);
      if (runs && fit == Fit::does_not_fit) ++denied;
      EXPECT_TRUE(runs || fit != Fit::fits) << row.at("script") << ", " << tried.dump();
    }
  EXPECT_EQ(ran, 13U);
  EXPECT_EQ(failed, 15U);
  EXPECT_EQ(denied, 0U);
}

}  // namespace
}  // namespace shardplan::published_verl_test
