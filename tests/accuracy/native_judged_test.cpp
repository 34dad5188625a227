// Runs of our own engine over what no record of it had: bytes, device and times as they were
// predicted before any of them ran.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "load/calibration.h"
#include "peak_errors.h"

namespace shardplan::native_judged_test {
namespace {

/// What decides how well a step's time is known.
std::string kind_of(const Json& job) {
  const Json &framework = job.at("framework"), &model = job.at("model");
  if (framework.contains("offload_optimizer")) return "states on the host";
  if (model.contains("num_experts") || model.contains("num_local_experts"))
    return framework.contains("capacity_factor") ? "experts with a capacity"
                                                 : "experts without a capacity";
  if (job.at("workload").at("method") == "lora") return "adapters";
  return job.at("precision").is_object() ? "fp8" : "dense";
}

struct TimeErrors {
  double sum = 0;  ///< absolute, in percent
  std::size_t runs = 0;
};

TEST(NativeJudged, AllocateWhatWasPredictedToTheByte) {
  PeakErrors errors;
  const RecordList asked = records_asked_for({"native_judged"});
  ASSERT_TRUE(asked.bad.empty());
  for (const Record& r : asked.records) {
    errors.add(r);
    const double device = *r.measured[index_of(Figure::device)];
    const Estimate e = estimate_job(r.job, load_calibration());
    EXPECT_LE(std::abs(static_cast<double>(e.device.point) / device - 1), 0.0007) << r.name;
  }
  expect_within(errors, 31, 0, 0);
}

TEST(NativeJudged, TakeTheTimeThatIsPredictedByKind) {
  std::map<std::string, TimeErrors> kinds;
  for (const Record& r : records_asked_for({"native_judged"}).records) {
    const Estimate e = estimate_job(r.job, load_calibration());
    const double measured = *r.measured[index_of(Figure::step_seconds)];
    const double error = std::abs(100 * (e.time.step_seconds / measured - 1));
    const Json job = read_json_file(record_files().at(r.name)).at("job");
    for (const std::string& kind : {kind_of(job), std::string("all")}) {
      kinds[kind].sum += error;
      ++kinds[kind].runs;
    }
  }
  struct Limit {
    std::string kind;
    std::size_t runs;
    double percent;  ///< of the mean error: what it was, rounded up
  };
  const Limit limits[] = {{"all", 31, 11.0},
                          {"dense", 9, 2.8},
                          {"fp8", 2, 3.5},
                          {"adapters", 5, 5.7},
                          {"experts with a capacity", 8, 5.9},
                          {"experts without a capacity", 3, 56.0},
                          {"states on the host", 4, 16.0}};
  for (const Limit& limit : limits) {
    const TimeErrors& errors = kinds[limit.kind];
    ASSERT_EQ(errors.runs, limit.runs) << limit.kind;
    EXPECT_LE(errors.sum / static_cast<double>(errors.runs), limit.percent) << limit.kind;
  }
}

}  // namespace
}  // namespace shardplan::native_judged_test
