// Steps at the pace that their hosts had between them (load/record_host.h): records that the pace's
// two constants were not fitted to.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "asked_records.h"
#include "load/record_host.h"
#include "questions/accuracy.h"

namespace shardplan::host_pace_test {
namespace {

TEST(RecordHost, TakesTheMeanBetweenStepsOnTheSlowestRank) {
  const auto rank = [](const std::vector<double>& forward) {
    Json samples = Json::array();
    for (const double seconds : forward)
      samples.push_back({{"forward_seconds", seconds}, {"backward_seconds", 1e-3}});
    return Json{{"host_samples", samples}};
  };
  const Json record{{"ranks", {rank({5e-4, 1e-3, 5e-4, 1e-3}), rank({5e-4, 6e-4})}}};
  EXPECT_DOUBLE_EQ(*block_between_steps(record), 1.75e-3);
}

TEST(RecordHost, IsNotKnownFromWhatWasTimedBeforeTheRun) {
  const Json rank{{"host", {{"python_call_seconds", 1e-6}}}};
  EXPECT_FALSE(block_between_steps({{"ranks", {rank}}}).has_value());
  EXPECT_FALSE(block_between_steps(Json::object()).has_value());
}

const HostSummary& whole(const Accuracy& accuracy) {
  return accuracy.hosts.back();
}

Accuracy judged(const std::vector<std::string>& lists) {
  return compare_with_records(records_asked_for(lists), AccuracyGroup::framework);
}

/// One machine, whose blocks went from 2.7 to 1.3 ms meanwhile. As predicted 13.3 % off.
TEST(HostPace, ExplainsHalfOfTheErrorsOfBalancedSteps) {
  const Accuracy accuracy = judged({"balance_2gpu", "balance_2gpu_deepspeed"});
  ASSERT_EQ(whole(accuracy).timed.count, 14);
  EXPECT_LE(whole(accuracy).timed.mean_absolute,
            0.058);  // 0.056 without the copies of rotated heads
}

/// A machine whose blocks take 2.6 to 3.6 ms, and three runs on another. As predicted 23.5 % off.
TEST(HostPace, ExplainsHalfOfTheErrorsOnASlowHost) {
  const Accuracy accuracy =
      judged({"pace_h100_1gpu", "pace_h100_2gpu_deepspeed", "pace_h100_2gpu_fsdp2"});
  ASSERT_EQ(whole(accuracy).timed.count, 17);
  EXPECT_LE(whole(accuracy).timed.mean_absolute, 0.11);
}

/// 17 runs, which its constants do not know either: what they have in common, from 10 % too fast to
/// 4 % too slow, and not what each has of its own (docs/evidence/accuracy.md). As predicted they
/// were 6.6 % too fast in common, before the usual host was that of all runs.
TEST(HostPace, ExplainsWhatErrorsOfOpenRlhfHaveInCommon) {
  const Accuracy accuracy = judged({"openrlhf", "openrlhf_more"});
  const HostSummary& all = whole(accuracy);
  EXPECT_LE(std::abs(all.timed.mean_signed), 0.5 * 0.066);
  EXPECT_LE(all.timed.mean_absolute, all.predicted.mean_absolute);
}

}  // namespace
}  // namespace shardplan::host_pace_test
