// Whether one measured step mends the predictions of others on its machine, judged by groups of
// runs that nothing of it was fitted to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "anchored_runs.h"
#include "json/document.h"

namespace shardplan::anchoring_test {
namespace {

using anchored::Errors;
using anchored::MeasuredRun;

const Calibration& calibration() {
  static const Calibration built_in = load_calibration();
  return built_in;
}

struct Judged {
  std::string group;
  std::size_t runs = 0;
  bool fitted = false;
  StepPart part = StepPart::kernels;  ///< that its first run waits for most
  Errors errors;
};

StepPart largest_part(const MeasuredRun& run) {
  const PartFactors shares = part_shares(run.job, calibration());
  return static_cast<StepPart>(std::ranges::max_element(shares) - shares.begin());
}

const anchored::Groups& groups() {
  static const anchored::Groups all = anchored::groups_of_runs(calibration());
  return all;
}

/// Not among those that part_spread() was fitted to.
bool judges(const std::vector<MeasuredRun>& group) {
  static const Json fit =
      read_json_file(SHARDPLAN_SOURCE_DIR
                     "/tests/accuracy/measure/cases_and_records/anchor_fit.json")
          .at("groups");
  return std::find(fit.begin(), fit.end(), Json(group.front().group)) == fit.end();
}

const std::vector<Judged>& judged() {
  static const std::vector<Judged> all = [] {
    std::vector<Judged> list;
    for (const std::vector<MeasuredRun>& group : groups()) {
      if (!judges(group)) continue;
      list.push_back({group.front().group, group.size(), group.front().fitted,
                      largest_part(group.front()), anchored::errors_of(group, calibration())});
    }
    return list;
  }();
  return all;
}

/// Means over the judged groups that `belongs` takes.
template <typename Belongs>
Errors mean_of(Belongs belongs, std::size_t least) {
  Errors mean;
  std::size_t count = 0;
  for (const Judged& j : judged()) {
    if (!belongs(j)) continue;
    mean.as_predicted += j.errors.as_predicted;
    mean.anchored += j.errors.anchored;
    ++count;
  }
  EXPECT_GE(count, least);
  return {mean.as_predicted / static_cast<double>(count),
          mean.anchored / static_cast<double>(count)};
}

constexpr double kLarge = 0.15;

// A GPU of another kind than the calibration's: its own way to reach or miss its datasheet is most
// of the error, and alike in all of its steps.
TEST(Anchoring, HalvesTheErrorOnGpusThatNothingWasFittedOn) {
  const Errors e = mean_of([](const Judged& j) { return !j.fitted; }, 5);
  RecordProperty("as predicted", std::to_string(e.as_predicted));
  RecordProperty("anchored", std::to_string(e.anchored));
  EXPECT_LT(e.anchored, e.as_predicted / 2);
}

// Drives are a machine's own and nobody told their rates: one step shows them.
TEST(Anchoring, HalvesTheErrorOfDrivesThatAreFarOff) {
  const Errors e = mean_of(
      [](const Judged& j) { return j.part == StepPart::drives && j.errors.as_predicted > kLarge; },
      1);
  RecordProperty("as predicted", std::to_string(e.as_predicted));
  RecordProperty("anchored", std::to_string(e.anchored));
  EXPECT_LT(e.anchored, e.as_predicted / 2);
}

TEST(Anchoring, DoesNoHarmWhereTheKindIsPredictedWell) {
  const Errors e = mean_of([](const Judged& j) { return j.errors.as_predicted <= kLarge; }, 8);
  RecordProperty("as predicted", std::to_string(e.as_predicted));
  RecordProperty("anchored", std::to_string(e.anchored));
  EXPECT_LT(e.anchored, e.as_predicted + 0.005);
}

TEST(Anchoring, MendsSomeOfLargeErrors) {
  const Errors e = mean_of([](const Judged& j) { return j.errors.as_predicted > kLarge; }, 5);
  RecordProperty("as predicted", std::to_string(e.as_predicted));
  RecordProperty("anchored", std::to_string(e.anchored));
  EXPECT_LT(e.anchored, 0.8 * e.as_predicted);
}

// For tests/accuracy/measure/cases_and_records/anchoring.py, which fits part_spread() to the other
// half.
TEST(Anchoring, WritesItsRowsWhereAskedTo) {
  const char* path = std::getenv("SHARDPLAN_ANCHOR_ROWS");
  if (path == nullptr) GTEST_SKIP() << "SHARDPLAN_ANCHOR_ROWS names no file";
  Json json{{"runs", Json::array()}, {"judged", Json::array()}};
  for (const std::vector<MeasuredRun>& group : groups())
    for (const MeasuredRun& run : group)
      json["runs"].push_back({{"group", run.group},
                              {"name", run.name},
                              {"fitted", run.fitted},
                              {"measured", run.measured},
                              {"predicted", run.predicted},
                              {"shares", part_shares(run.job, calibration())}});
  for (const Judged& j : judged())
    json["judged"].push_back({{"group", j.group},
                              {"runs", j.runs},
                              {"part", kStepPartNames[index_of(j.part)]},
                              {"as_predicted", j.errors.as_predicted},
                              {"anchored", j.errors.anchored}});
  std::ofstream(path) << json.dump(1) << '\n';
}

}  // namespace
}  // namespace shardplan::anchoring_test
