// FSDP1's steps on two GPUs and one, predicted before they ran (measure/predictions/fsdp1.json).
#include "peak_errors.h"

namespace shardplan::fsdp1_records_test {
namespace {

const RecordList& records() {
  static const RecordList list = records_asked_for({"fsdp1"});
  return list;
}

TEST(Fsdp1Records, HoldsThePeaks) {
  expect_within(peak_errors(records()), 12, 0.02, 0.1);
}

TEST(Fsdp1Records, HoldsWhatStaysAfterTheStep) {
  for (const Record& r : records().records) {
    const Estimate e = estimate(r.job.model, r.job.plan, Calibration{});
    const auto measured = r.measured[index_of(Figure::step_end)];
    ASSERT_TRUE(measured.has_value()) << r.name;
    EXPECT_NEAR(
        static_cast<double>(e.phases[static_cast<std::size_t>(Phase::step)].end) / *measured, 1,
        0.005)
        << r.name;
  }
}

}  // namespace
}  // namespace shardplan::fsdp1_records_test
