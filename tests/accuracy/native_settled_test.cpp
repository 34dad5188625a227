// Runs of our own engine over kinds whose times had been far off, once they settle: experts without
// a capacity, states on the host of several micro-batches, and on NVMe at the disk's own rate
// (environment.nvme). All were predicted before they ran; of what the times went by since, only
// what a product takes the host was chosen with some of them in view.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "load/calibration.h"
#include "peak_errors.h"

namespace shardplan::native_settled_test {
namespace {

/// What decides how well a step's time is known.
std::string kind_of(const Json& job) {
  const std::string states = job.at("framework").value("offload_optimizer", "");
  if (states == "nvme") return "states on NVMe";
  if (states == "cpu") return "states on the host";
  return job.at("run").value("balanced_routing", false) ? "experts, balanced"
                                                        : "experts, as routed";
}

TEST(NativeSettled, AllocateWhatWasPredictedToTheByte) {
  expect_to_the_byte("native_settled", 22);
}

TEST(NativeSettled, TakeTheTimeThatIsPredictedByKind) {
  struct TimeErrors {
    double sum = 0;  ///< absolute, in percent
    std::size_t runs = 0;
  };
  std::map<std::string, TimeErrors> kinds;
  for (const Record& r : records_asked_for({"native_settled"}).records) {
    const Estimate e = estimate_job(r.job, load_calibration());
    const double measured = *r.measured[index_of(Figure::step_seconds)];
    const Json job = read_json_file(record_files().at(r.name)).at("job");
    TimeErrors& errors = kinds[kind_of(job)];
    errors.sum += std::abs(100 * (e.time.step_seconds / measured - 1));
    ++errors.runs;
  }
  struct Limit {
    std::string kind;
    std::size_t runs;
    double percent;  ///< of the mean error: what it was, rounded up
  };
  for (const Limit& limit :
       {Limit{"experts, balanced", 5, 10.1}, Limit{"experts, as routed", 7, 14.7},
        Limit{"states on the host", 6, 7.9}, Limit{"states on NVMe", 4, 9.7}}) {
    const TimeErrors& errors = kinds[limit.kind];
    ASSERT_EQ(errors.runs, limit.runs) << limit.kind;
    EXPECT_LE(errors.sum / static_cast<double>(errors.runs), limit.percent) << limit.kind;
  }
}

}  // namespace
}  // namespace shardplan::native_settled_test
