// Iterations of TRL's trainers on an H100 and of the plain loop of measure/run_single.py on an
// H200: a record of such a job is judged by all of its models, not by the actor alone.
#include <gtest/gtest.h>

#include "peak_errors.h"
#include "questions/accuracy.h"
#include "trainers/description.h"

namespace shardplan::rlhf_records_test {
namespace {

RecordList records() {
  return records_asked_for({"preference", "preference_trl"});
}

double error_of(const Comparison& c, Figure figure) {
  return std::abs(*relative_error(c.predicted[index_of(figure)], c.measured[index_of(figure)]));
}

TEST(RlhfRecords, HoldsThePeaks) {
  expect_within(peak_errors(records()), 16, 0.5, 1.6);
}

TEST(RlhfRecords, TakesAllModelsIntoAccount) {
  const Accuracy a = compare_with_records(records(), AccuracyGroup::framework);
  ASSERT_EQ(a.comparisons.size(), 16U);
  double seconds = 0;
  for (const Comparison& c : a.comparisons) {
    EXPECT_LE(error_of(c, Figure::model), 0.06) << c.name;
    EXPECT_LE(error_of(c, Figure::allocated_peak), 0.016) << c.name;
    seconds += error_of(c, Figure::step_seconds) / 16;
  }
  EXPECT_LE(seconds, 0.10);
}

/// Half of every pair's tokens were its prompt (measure/trl_step.py), which the jobs of these
/// records do not say: told of it, what was too high by up to 1.4 % is not.
TEST(RlhfRecords, PromptsAreWhatWasTooHigh) {
  RecordList list = records();
  std::erase_if(list.records, [](const Record& r) {
    return r.job.plan.trainer->name != "trl" || r.job.rlhf->description().generates;
  });
  ASSERT_GE(list.records.size(), 6U);
  for (Record& record : list.records)
    for (Role& role : record.job.rlhf->roles)
      role.plan.workload.unscored = role.plan.workload.sequence_length / 2;
  for (const Comparison& c : compare_with_records(list, AccuracyGroup::framework).comparisons) {
    const bool scores = c.name.find("reward") == std::string::npos;
    EXPECT_LE(error_of(c, Figure::allocated_peak), scores ? 0.0025 : 0.016) << c.name;
  }
}

/// A hundred iterations whose answers end by themselves, predicted before they ran: one has the
/// lengths that the estimate takes, the others' were drawn by a seed.
TEST(RlhfRecords, ForesawWhatAHundredIterationsHold) {
  const RecordList list = records_asked_for({"iterations"});
  ASSERT_EQ(list.records.size(), 4U);
  for (const Comparison& c : compare_with_records(list, AccuracyGroup::framework).comparisons) {
    EXPECT_LE(error_of(c, Figure::allocated_peak), 0.001) << c.name;
    EXPECT_LE(error_of(c, Figure::reserved), c.name.ends_with("drawn") ? 0.001 : 0.032) << c.name;
    EXPECT_FALSE(c.measured[index_of(Figure::step_seconds)]) << c.name;
  }
}

/// What scores apart trains in phases of its own, which records do not tell.
TEST(RlhfRecords, ComparesOnlyPhasesThatTheJobHas) {
  const Accuracy a = compare_with_records(records(), AccuracyGroup::framework);
  for (const Comparison& c : a.comparisons) {
    const bool generates = c.name.find("grpo") != std::string::npos;
    EXPECT_EQ(c.predicted[index_of(Figure::forward_peak)].has_value(), !generates) << c.name;
  }
}

}  // namespace
}  // namespace shardplan::rlhf_records_test
