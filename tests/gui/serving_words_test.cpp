// A job that an engine serves, as the windows say it: no step, no figure that nobody knows.
#include "models/serving_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/format.h"
#include "gui_testing.h"
#include "job/fields.h"
#include "models/job_words.h"
#include "models/plan_table.h"
#include "models/saved_files.h"
#include "models/text.h"
#include "models/training_fields.h"
#include "models/verdict_words.h"
#include "questions/compare.h"

namespace shardplan::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kServed = R"({"model": "llama-3.1-8b", "cluster": "1xH100",
    "workload": {"kind": "inference", "prompt_length": 4096, "new_tokens": 512, "engine": {"engine": "vllm"}}})";

class Serving : public testing::Test {
 protected:
  void SetUp() override {
    ask(session_, kServed);
    ASSERT_TRUE(answer().estimate && answer().estimate->serving);
  }
  const Answer& answer() const { return session_.answer(); }
  const ServingEstimate& served() const { return *answer().estimate->serving; }
  std::string rates() const { return JobWords::rates(answer()).toStdString(); }

  Session session_;
};

TEST_F(Serving, SaysItsPaceAndNoFigureThatNobodyKnows) {
  EXPECT_THAT(rates(), HasSubstr(format_count(served().sequences) + " sequences at once"));
  EXPECT_THAT(rates(), HasSubstr(format_count(std::llround(served().tokens_per_second))));
  EXPECT_THAT(rates(), HasSubstr(format_seconds(served().first_token_seconds)));
  EXPECT_THAT(rates(), HasSubstr("per million new tokens at the list price of"));
  EXPECT_THAT(rates(), Not(HasSubstr("nan")));
  EXPECT_THAT(rates(), Not(HasSubstr("$-")));
  EXPECT_EQ(VerdictWords::sentence(*answer().estimate),
            QStringLiteral("Yes, with %1").arg(ServingWords::sequences(served())));
}

TEST_F(Serving, HasThePartsOfAPass) {
  double sum = 0;
  for (const Share& part : EstimateModels::time(answer())) sum += part.value;
  EXPECT_NEAR(sum, served().pass.seconds(), 1e-12);
  EXPECT_EQ(JobWords::time_title(answer()), QStringLiteral("Time of one pass"));
}

TEST_F(Serving, SaysWhatLimitsTheSequences) {
  ServingEstimate s = served();
  EXPECT_THAT(ServingWords::sequences(s).toStdString(), HasSubstr("as the cache has room for"));
  s.limited_by = "max_num_seqs";
  EXPECT_THAT(ServingWords::sequences(s).toStdString(), HasSubstr("the engine's limit"));
  s.limited_by = "batch";
  s.replicas = 4;
  EXPECT_THAT(ServingWords::sequences(s).toStdString(), HasSubstr("as asked"));
  EXPECT_THAT(ServingWords::sequences(s).toStdString(), HasSubstr("; 4 engines side by side"));
}

TEST_F(Serving, MayLeaveTheSequencesOpen) {
  const TrainingField field = TrainingFields::batch();
  EXPECT_TRUE(field.can_be_open(*answer().job));
  EXPECT_EQ(field.read(*answer().job).toInt(), 0);
  field.write(session_, 16);
  EXPECT_EQ(served().sequences, 16);
  field.write(session_, 0);
  EXPECT_FALSE(field_of(session_.document().json(), "/workload/batch"));
  EXPECT_EQ(served().limited_by, "cache");
  ask(session_, R"({"model": "gpt2", "cluster": "1xH100", "framework": "single",
                    "workload": {"kind": "inference"}})");
  EXPECT_FALSE(field.can_be_open(*answer().job));
}

TEST_F(Serving, HasNoFramework) {
  for (const TrainingField& field : TrainingFields::all()) {
    const bool is_frameworks = field.pointer == "/framework/name" || field.pointer == "/attention";
    EXPECT_FALSE(is_frameworks && field.applies_to(*answer().job)) << field.pointer;
  }
}

TEST_F(Serving, ComparesPassesNotSteps) {
  PlanTable table;
  table.set_plans(compare_plans(*answer().job, session_.workbench().calibration),
                  session_.workbench().calibration);
  QStringList rows;
  for (int row = 0; row < table.rowCount(); ++row)
    rows.push_back(table.index(row, 0).data().toString() + QStringLiteral(": ") +
                   table.index(row, 1).data().toString());
  const std::int64_t spare = answer().estimate->usable_bytes - answer().estimate->device.point;
  EXPECT_TRUE(rows.contains(QStringLiteral("to spare: ") + bytes_text(spare)));
  EXPECT_TRUE(rows.contains(QStringLiteral("time of one pass: ") +
                            text(format_seconds(served().pass.seconds()))))
      << rows.join(QLatin1Char('\n')).toStdString();
}

TEST_F(Serving, HasNoReport) {
  const std::string path = testing::TempDir() + "engine.html";
  EXPECT_THROW(
      write_report(answer(), session_.document().json(), session_.workbench(), path, "en", "", {}),
      InputError);
}

}  // namespace
}  // namespace shardplan::gui
