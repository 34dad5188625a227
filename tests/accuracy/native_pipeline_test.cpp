// Our own engine's pipelines, of stages that share one GPU and of a GPU each, all predicted before
// they ran: bytes of the fullest rank, what NCCL takes, and losses that do not depend on how a
// network is divided.
#include <gtest/gtest.h>

#include <string>

#include "losses_alike.h"
#include "peak_errors.h"

namespace shardplan::native_pipeline_test {
namespace {

constexpr std::size_t kRecords = 39;

TEST(NativePipeline, AllocatesWhatWasPredictedToTheByte) {
  const RecordList list = records_asked_for({"native_pipeline", "native_pipeline_2gpu"});
  ASSERT_TRUE(list.bad.empty());
  PeakErrors errors;
  for (const Record& r : list.records) errors.add(r);
  expect_within(errors, kRecords, 0, 0);
}

TEST(NativePipeline, LearnsTheSameHoweverANetworkIsDivided) {
  const auto alike = [](const std::string& name) {
    return name.find("-stages-alike") != std::string::npos;
  };
  expect_losses_alike(alike, 2, 6, 1e-6);
}

}  // namespace
}  // namespace shardplan::native_pipeline_test
