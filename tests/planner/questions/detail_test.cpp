// The ranks of one plan, estimated on several threads, are those that are estimated in turn.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "estimate/detail.h"
#include "estimate/ranks.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/estimate_job.h"

namespace shardplan {
namespace {

TEST(RanksInDetail, AreTheSameHoweverTheyAreDone) {
  const HardwareCatalog hardware = load_hardware_catalog();
  for (const int stage : {1, 2}) {
    const Job job = load_job({{"model", "llama-2-7b"},
                              {"cluster", "8xA100-40GB"},
                              {"checkpointing", "full"},
                              {"framework", {{"name", "deepspeed"}, {"zero_stage", stage}}}},
                             "job", {.hardware = &hardware});
    const Calibration calibration = load_calibration();
    const auto backwards = [](std::size_t count, const std::function<void(std::size_t)>& work) {
      for (std::size_t i = count; i-- > 0;) work(i);
    };
    const std::vector<Estimate> alone = estimate_ranks(job.model, job.plan, calibration);
    for (const DetailedEstimate& detail :
         {estimate_in_detail(job.model, job.plan, calibration),
          estimate_in_detail(job.model, job.plan, calibration, backwards),
          estimate_job_in_detail(job, calibration)}) {
      ASSERT_EQ(detail.ranks.size(), alone.size());
      ASSERT_GT(alone.size(), 1U);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(detail.ranks[i].rank, alone[i].rank);
        EXPECT_EQ(detail.ranks[i].device.point, alone[i].device.point);
        EXPECT_EQ(detail.ranks[i].device.upper, alone[i].device.upper);
        EXPECT_EQ(detail.ranks[i].reserved.least, alone[i].reserved.least);
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
