// What the windows show against core's JSON: the same numbers in the same words.
#include <gtest/gtest.h>

#include "base/format.h"
#include "gui_testing.h"
#include "models/estimate_models.h"
#include "models/text.h"
#include "models/training_fields.h"
#include "save/estimate.h"

namespace shardplan::gui {
namespace {

class EstimateModelsTest : public testing::Test {
 protected:
  EstimateModelsTest() { ask(session_, kTitleQuestion); }
  Json json() const { return to_json(*session_.answer().estimate, *session_.answer().job); }
  static QString bytes(const Json& value) { return text(format_bytes(value.get<std::int64_t>())); }

  Session session_;
};

TEST_F(EstimateModelsTest, TheVerdictIsTheJsons) {
  const Json j = json();
  const auto lines = EstimateModels::resources(session_.answer());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(name_of(lines[0].fit), j["verdict"]["gpu"]["verdict"].get<std::string>());
  EXPECT_EQ(lines[0].amount,
            QStringLiteral("%1 of %2")
                .arg(bytes(j["gpu"]["peak"]["device"]["point"]), bytes(j["gpu"]["usable_bytes"])));
  EXPECT_TRUE(lines[0].margin.contains(bytes(j["gpu"]["peak"]["device"]["upper"])));
  EXPECT_FALSE(lines[1].is_used);
}

TEST_F(EstimateModelsTest, ThePartsAreTheBreakdownAndAddUp) {
  const Json j = json();
  const auto parts = EstimateModels::breakdown(
      *session_.answer().estimate, session_.answer().job->plan, session_.workbench().calibration);
  double sum = 0;
  std::size_t at = 0;
  for (const Json& line : j["gpu"]["breakdown"]) {
    if (line["at_peak_bytes"].get<std::int64_t>() <= 0) continue;
    ASSERT_LT(at, parts.size());
    EXPECT_EQ(parts[at].amount, bytes(line["at_peak_bytes"]));
    EXPECT_EQ(parts[at].source, text(line["source"].get<std::string>()));
    EXPECT_TRUE(
        parts[at].hint.contains(text(format_count(line["at_peak_bytes"].get<std::int64_t>()))));
    sum += parts[at++].value;
  }
  EXPECT_EQ(at, parts.size());
  EXPECT_EQ(sum, j["gpu"]["peak"]["device"]["point"].get<double>());
}

TEST_F(EstimateModelsTest, ThePhasesAreTheJsons) {
  const Json phases = json()["gpu"]["phases"];
  const auto rows = EstimateModels::phases(session_.answer());
  EXPECT_EQ(rows[0].second, bytes(phases["model"]));
  EXPECT_EQ(rows[1].first, bytes(phases["forward_peak"]));
  EXPECT_EQ(rows[2].second, bytes(phases["backward_end"]));
  EXPECT_EQ(rows[3].first, bytes(phases["step_peak"]));
}

TEST_F(EstimateModelsTest, TheTimelinePeaksAtTheAllocatedPeak) {
  const Answer& a = session_.answer();
  EXPECT_EQ(a.timeline->points[a.timeline->peak].total, a.estimate->allocated.point);
}

TEST_F(EstimateModelsTest, TheTimeIsTheJsons) {
  const Json time = json()["time"];
  EXPECT_TRUE(EstimateModels::rates(session_.answer())
                  .contains(text(format_seconds(time["step_seconds"].get<double>()))));
  double sum = 0;
  for (const Share& part : EstimateModels::time(session_.answer())) sum += part.value;
  EXPECT_NEAR(sum, time["step_seconds"].get<double>(), 1e-9);
}

TEST_F(EstimateModelsTest, AnUnfinishedJobShowsWhatIsKnown) {
  ask(session_, R"({"cluster": "4xA100-40GB"})");
  EXPECT_FALSE(session_.answer().estimate);
  ASSERT_NE(session_.answer().the_cluster(), nullptr);
  EXPECT_EQ(session_.answer().the_cluster()->gpus_per_node, 4);
  ask(session_, R"({"model": "gpt2", "cluster": "4xA100-41GB"})");
  ASSERT_TRUE(session_.answer().error);
  EXPECT_EQ(session_.answer().error->key, "cluster");
  ASSERT_NE(session_.answer().the_model(), nullptr);
}

TEST_F(EstimateModelsTest, EveryFixCanBeAppliedAndGivesWhatItPromised) {
  session_.find_fixes_now();
  const std::vector<Fix> fixes = session_.fixes();
  ASSERT_FALSE(fixes.empty());
  for (const Fix& fix : fixes) {
    ask(session_, kTitleQuestion);
    session_.apply(fix);
    ASSERT_TRUE(session_.answer().estimate);
    EXPECT_EQ(session_.answer().estimate->device.point, fix.after.device.point)
        << fix.changes.front().what;
  }
}

TEST_F(EstimateModelsTest, EveryTrainingFieldShowsWhatWasWrittenToIt) {
  for (const TrainingField& field : TrainingFields::all()) {
    for (const Choice& choice : field.choices) {
      ask(session_, kTitleQuestion);
      if (choice.value == QStringLiteral("single")) continue;  // of one GPU only
      if (field.applies && !field.applies(*session_.answer().job)) continue;
      field.write(session_, choice.value);
      if (!session_.answer().job) {
        EXPECT_TRUE(session_.answer().error);  // a contradiction: said, not hidden
        continue;
      }
      EXPECT_EQ(field.read(*session_.answer().job), choice.value) << field.pointer;
    }
  }
}

}  // namespace
}  // namespace shardplan::gui
