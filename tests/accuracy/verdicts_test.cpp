// Verdicts about runs that no bound was fitted to, on GPUs that have a drawn share of what each run
// took, or of what it cannot do without.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "all_records.h"
#include "questions/verdicts.h"

namespace shardplan::verdicts_test {
namespace {

TEST(Verdicts, AreRightWhereLimitsAreDrawn) {
  const std::vector<VerdictCount> counts = verdict_counts(all_records().comparisons);
  const VerdictCount& all = counts.back();
  EXPECT_GE(all.runs, 350);
  EXPECT_EQ(all.fits + all.tight + all.refused, all.runs);
  std::string wrong;
  for (const std::string& name : all.wrong) wrong += "\n" + name;
  EXPECT_EQ(all.wrongly_fit, 0) << wrong;
  EXPECT_LE(100 * all.wrongly_refused, all.runs) << wrong;
}

TEST(Verdicts, HaveNoLimitOfARecordThatBoundsWereFittedTo) {
  for (const Comparison& c : all_records().comparisons) {
    const auto& fitted = all_records().bound_records;
    const bool seen = std::find(fitted.begin(), fitted.end(), c.name) != fitted.end();
    EXPECT_FALSE(seen && c.at_limit) << c.name;
  }
}

/// Each offset is drawn about as often, and the same for the same name on every machine.
TEST(Verdicts, HaveLimitsOfAllOffsets) {
  std::map<double, int> drawn;
  for (const Comparison& c : all_records().comparisons) ++drawn[limit_offset(c.name)];
  EXPECT_EQ(drawn.size(), kLimitOffsets.size());
  for (const auto& [offset, count] : drawn) EXPECT_GE(count, 150) << offset;
  EXPECT_EQ(limit_offset("h200-1x-single-bart-large-bf16-pure-b8-s512-ckpt"), -0.02);
}

}  // namespace
}  // namespace shardplan::verdicts_test
