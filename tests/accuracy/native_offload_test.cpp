// Our own engine's runs with states, or what blocks keep, on the host against their prediction,
// which was committed before they ran.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "asked_records.h"
#include "estimate/estimate.h"
#include "load/calibration.h"

namespace shardplan::native_offload_test {
namespace {

constexpr std::size_t kRecords = 33;

RecordList records() {
  return records_asked_for({"native_offload", "native_offload_h200", "native_kept"});
}

Estimate estimated(const Record& r) {
  return estimate(r.job.model, r.job.plan, load_calibration(), ReservedMemory::ratio);
}

/// What the record says of the host; null for the run that keeps everything on the GPU.
Json host_of(const Record& r) {
  return read_json_file(record_files().at(r.name)).at("measured").value("host", Json());
}

TEST(OffloadedRuns, take_of_the_gpu_what_is_predicted_to_the_byte) {
  const RecordList list = records();
  ASSERT_TRUE(list.bad.empty());
  ASSERT_GE(list.records.size(), kRecords);
  for (const Record& r : list.records)
    EXPECT_EQ(static_cast<double>(estimated(r).allocated.point),
              r.measured[index_of(Figure::allocated_peak)])
        << r.name;
}

TEST(OffloadedRuns, take_of_the_host_what_is_predicted) {
  for (const Record& r : records().records) {
    const Json host = host_of(r);
    if (host.is_null()) continue;
    const Estimate e = estimated(r);
    EXPECT_EQ(e.host_per_node.pinned, host.at("pinned").get<std::int64_t>()) << r.name;
    EXPECT_EQ(e.host_per_node.pageable, host.at("pageable").get<std::int64_t>()) << r.name;
    // The driver's and the libraries' own pages come on top.
    const std::int64_t others =
        host.at("resident_growth").get<std::int64_t>() - e.host_per_node.total();
    EXPECT_GE(others, 0) << r.name;
    EXPECT_LE(others, 256'000'000) << r.name;
  }
}

}  // namespace
}  // namespace shardplan::native_offload_test
