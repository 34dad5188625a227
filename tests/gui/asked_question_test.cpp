// Questions as people type them, and which machine to rent.
#include "models/asked_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui_testing.h"
#include "models/rent_session.h"
#include "models/terms.h"

namespace shardplan::gui {
namespace {

struct Asked {
  const char *words, *model, *cluster, *method;
};

class Typed : public testing::TestWithParam<Asked> {};

TEST_P(Typed, IsUnderstood) {
  const Session session;
  const auto read =
      AskedQuestion::read(QString::fromUtf8(GetParam().words), session.workbench().hardware);
  EXPECT_EQ(read.error.toStdString(), "");
  ASSERT_TRUE(read.job.is_object());
  EXPECT_EQ(read.job["model"], GetParam().model);
  EXPECT_EQ(read.job["cluster"], GetParam().cluster);
  EXPECT_EQ(read.job.value("/workload/method"_json_pointer, std::string()), GetParam().method);
}

INSTANTIATE_TEST_SUITE_P(
    Questions, Typed,
    testing::Values(Asked{"7B on 4x40GB", "7B", "4x40GB", ""},
                    Asked{"7 B on 4 × 40 GB", "7B", "4x40GB", ""},
                    Asked{"4x40GB 7B?", "7B", "4x40GB", ""},
                    Asked{"train llama-3.1-8b on 8 x H100 with LoRA", "llama-3.1-8b", "8xH100",
                          "lora"},
                    Asked{"qlora llama-2-70b on 2x8xH100", "llama-2-70b", "2x8xH100", "qlora"},
                    Asked{"gpt2 on p4d.24xlarge", "gpt2", "p4d.24xlarge", ""}));

TEST(AskedQuestion, SaysWhatIsWrongOrMissing) {
  const Session session;
  const auto error = [&](const char* words) {
    const auto read = AskedQuestion::read(QString::fromUtf8(words), session.workbench().hardware);
    EXPECT_TRUE(read.job.is_null()) << words;
    return read.error.toStdString();
  };
  EXPECT_THAT(error("7B"), testing::HasSubstr("a model and a machine"));
  EXPECT_THAT(error(""), testing::HasSubstr("a model and a machine"));
  EXPECT_THAT(error("llama-2-7c on 4x40GB"), testing::HasSubstr("llama-2-7b"));
  EXPECT_THAT(error("7B on 4xA100-41GB"), testing::HasSubstr("cluster"));
  EXPECT_THAT(error("7B on 4x40GB tomorrow"), testing::HasSubstr("tomorrow"));
}

TEST(RentSession, FindsMachinesByDollarsAndDaysWithTheirPrices) {
  Session session;
  RentSession rent(session);
  ASSERT_GT(rent.machines(1).size(), 10U);
  rent.start({.models = {"gpt2"}, .methods = {"full", "lora"}, .tokens = 1e9});
  ASSERT_TRUE(wait_for(rent.work(), &Background::finished, [&] { return !rent.is_running(); }));
  ASSERT_EQ(rent.rows().size(), 2 * rent.machines(1).size());
  const RentRow& best = rent.rows().front();
  EXPECT_TRUE(best.fits);
  EXPECT_GT(best.dollars_value, 0);
  EXPECT_FALSE(best.as_of.isEmpty());
  EXPECT_TRUE(best.hint.contains(best.as_of));
  EXPECT_TRUE(best.hint.contains(QStringLiteral("http")));  // the source
  for (const RentRow& row : rent.rows())
    if (row.fits && row.dollars_value > 0) {
      EXPECT_GE(row.dollars_value, best.dollars_value);
    }
  std::vector<int> rows;
  const PlotData plot = rent.plot(rows);
  ASSERT_EQ(plot.points.size(), rows.size());
  EXPECT_THAT(plot.lines.front().points, testing::Contains(testing::Eq(0)));  // the cheapest
  EXPECT_TRUE(rent.summary().contains(best.machine));
  // What is used says the same again.
  session.document().replace(best.job);
  ASSERT_TRUE(session.answer().estimate);
  EXPECT_TRUE(session.answer().estimate->verdict.fits);
}

TEST(RentSession, SaysThatNothingFits) {
  Session session;
  RentSession rent(session);
  rent.start({.models = {"llama-3.1-405b"}, .methods = {"full"}, .tokens = 1e9});
  ASSERT_TRUE(wait_for(rent.work(), &Background::finished, [&] { return !rent.is_running(); }));
  std::vector<int> rows;
  EXPECT_TRUE(rent.plot(rows).points.empty());
  EXPECT_FALSE(rent.summary().isEmpty());
}

TEST(Terms, AreFoundWhereTheyAreMentioned) {
  const auto names = [](const QString& text) {
    std::vector<std::string> out;
    for (const Term& term : Terms::in(text)) out.push_back(term.name.toStdString());
    return out;
  };
  EXPECT_THAT(names(QStringLiteral("the ZeRO stage")), testing::ElementsAre("ZeRO"));
  EXPECT_THAT(names(QStringLiteral("zerox")), testing::IsEmpty());
  EXPECT_THAT(names(QStringLiteral("Micro-batch of each GPU")),
              testing::ElementsAre("Micro-batch"));
  EXPECT_EQ(Terms::with({}).size(), Terms::all().size());
  ASSERT_FALSE(Terms::with(QStringLiteral("ring")).empty());
  for (const Term& term : Terms::with(QStringLiteral("bf16")))
    EXPECT_TRUE((term.name + term.meaning + term.also.join(QLatin1Char(' ')))
                    .contains(QStringLiteral("bf16")));
}

}  // namespace
}  // namespace shardplan::gui
