// Our own engine's runs of ranks that share one GPU, all predicted before they ran: bytes, and
// losses that do not depend on how a network is divided.
#include <gtest/gtest.h>

#include <string>

#include "losses_alike.h"
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

TEST(NativeOnOneGpu, LearnsTheSameHoweverANetworkIsDivided) {
  const auto same = [](const std::string& name) {
    return name.starts_with("h100-") && name.ends_with("-same") &&
           name.find("mixtral") == std::string::npos && name.find("lora") == std::string::npos;
  };
  expect_losses_alike(same, 2, 4, 1e-5);
}

}  // namespace
}  // namespace shardplan::native_one_gpu_test
