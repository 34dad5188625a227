// Losses of runs of our own engine that were given the same samples: they do not depend on how a
// network is divided.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "asked_records.h"

namespace shardplan {

/// Of the records that `chosen` takes by name: those of one model have the same losses, step by
/// step, up to `tolerance` (relative). There are so many `models`, and of each at least `runs`
/// runs.
template <typename Chosen>
void expect_losses_alike(Chosen&& chosen, std::size_t models, std::size_t runs, double tolerance) {
  std::map<std::string, std::vector<std::vector<double>>> losses;
  for (const auto& [name, file] : record_files()) {
    if (!chosen(name)) continue;
    std::vector<double> series;
    const Json record = read_json_file(file);
    for (const Json& step : record.at("steps")) series.push_back(step.at("loss").get<double>());
    losses[record.at("job").at("model").dump()].push_back(std::move(series));
  }
  ASSERT_EQ(losses.size(), models);
  for (const auto& [model, all] : losses) {
    ASSERT_GE(all.size(), runs) << model;
    for (const std::vector<double>& run : all) {
      ASSERT_EQ(run.size(), all.front().size());
      for (std::size_t i = 0; i < run.size(); ++i)
        EXPECT_NEAR(run[i], all.front()[i], tolerance * run[i]) << model << ", step " << i + 1;
    }
  }
}

}  // namespace shardplan
