// Every language says what the reports of the example jobs need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/render/render.h"
#include "report_testing.h"

namespace shardplan::report {
namespace {

class Language : public ::testing::TestWithParam<std::string> {};

/// A missing message is a std::logic_error; a missing phrase shows English words.
TEST_P(Language, SaysWhatTheExampleJobsNeed) {
  const Messages words(GetParam());
  for (const std::string& job : config_jobs()) {
    const Findings& found = findings_of(job);
    EXPECT_NO_THROW(report_html(job_report(found), words)) << job;
    for (const TrafficLine& line : found.estimate.traffic)
      EXPECT_TRUE(words.phrase(line.what)) << line.what;
    for (const Alternative& a : found.alternatives) {
      EXPECT_TRUE(words.phrase(a.name)) << a.name;
      for (const TrafficLine& line : a.estimate.traffic)
        EXPECT_TRUE(words.phrase(line.what)) << line.what;
    }
    for (const Fix& fix : found.fixes)
      for (const Change& change : fix.changes)
        EXPECT_TRUE(words.phrase(change.what)) << change.what;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Language, ::testing::ValuesIn(languages()),
                         [](const auto& language) { return language.param; });

}  // namespace
}  // namespace shardplan::report
