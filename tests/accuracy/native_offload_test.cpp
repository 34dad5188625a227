// Our own engine's runs with states, or what blocks keep, on the host against their prediction,
// which was committed before they ran.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

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
Json host_of_file(const std::string& file) {
  return read_json_file(file).at("measured").value("host", Json());
}
Json host_of(const Record& r) {
  return host_of_file(record_files().at(r.name));
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
  }
}

/// Every run that keeps something on its host: its process has all ranks of the machine. What it
/// grows by beside was fitted to the median of every second one in alphabetical order, of fp32 and
/// of 16 bits; those with cuFile were the first two of four; further ranks are as the median of
/// those that have some.
std::vector<Record> kept_on_host() {
  std::vector<std::string> paths;
  for (const auto& [name, file] : record_files())
    if (name.find("-native-") != std::string::npos && !host_of_file(file).is_null())
      paths.push_back(file);
  return load_records(paths, load_hardware_catalog()).records;
}

TEST(OffloadedRuns, have_as_much_resident_memory_as_is_predicted) {
  std::size_t all = 0, near = 0;
  double sum = 0;
  for (const Record& r : kept_on_host()) {
    const Json host = host_of(r);
    if (!host.contains("resident_growth")) continue;
    const Estimate e = estimated(r);
    const double measured = host.at("resident_growth").get<double>();
    const double error =
        static_cast<double>(e.host_per_node.total() + e.host_growth_of_process) / measured - 1;
    ++all;
    near += std::abs(error) <= 0.01 ? 1U : 0U;
    sum += std::abs(error);
    EXPECT_LE(std::abs(error), 0.1) << r.name;
  }
  EXPECT_GE(all, std::size_t{87});
  EXPECT_GE(near, all * 9 / 10);
  EXPECT_LE(sum / static_cast<double>(all), 0.01);
}

}  // namespace
}  // namespace shardplan::native_offload_test
