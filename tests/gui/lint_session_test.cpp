// The linter beside the training page: findings with their costs and fixes, kept up to the file.
#include "models/lint_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QLocale>

#include "gui_testing.h"
#include "lint/registry.h"
#include "models/dropped_file.h"
#include "support/subprocess.h"
#include "words/store.h"

namespace shardplan::gui {
namespace {

using testing::HasSubstr;

/// Stage 3 with a mistyped key and windows far larger than the model needs.
constexpr const char* kFlawed = R"({"bf16": {"enabled": true}, "train_batch_size": 4,
  "zero_optimization": {"stage": 3, "overlap_com": true, "reduce_bucket_size": 1000000000}})";

QString title_in_japanese(const char* rule) {
  return QString::fromStdString(WordStore("ja").title_of(*find_rule(std::string_view(rule))));
}

class LintSessionTest : public testing::Test {
 protected:
  LintSessionTest() : lint_(session_), tester_(lint_.model()) {
    ask(session_, R"({"model": "llama-2-7b", "cluster": "4xA100-40GB", "checkpointing": "full"})");
  }
  void drop(const std::string& text) {
    take_file(session_.document(), QString::fromStdString(folder_.file("ds_config.json", text)));
    look();
  }
  void look() {
    lint_.look();
    ASSERT_TRUE(wait_for(lint_, &LintSession::changed, [&] { return !lint_.is_running(); }));
  }
  const Finding* finding(const char* key) const {
    for (const Finding& f : lint_.findings().rows())
      if (f.key == QString::fromUtf8(key)) return &f;
    return nullptr;
  }

  const TemporaryFolder folder_;
  Session session_;
  LintSession lint_;
  const QAbstractItemModelTester tester_;
};

TEST_F(LintSessionTest, NamesCostsAndFixesOfADroppedFile) {
  drop(R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1,
           "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000000000}})");
  const Finding* bucket = finding("zero_optimization.reduce_bucket_size");
  ASSERT_NE(bucket, nullptr);
  EXPECT_THAT(bucket->costs.toStdString(), HasSubstr("GPU"));
  const auto& rows = lint_.findings().rows();
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(),
                          [](const Finding& f) { return !f.costs.isEmpty() && !f.fix.isEmpty(); }));
  EXPECT_THAT(lint_.summary().toStdString(), HasSubstr("of each GPU"));
}

TEST_F(LintSessionTest, PricesAnAutoPrecisionByWhatTheJobSays) {
  drop(R"({"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": 1,
           "zero_optimization": {"stage": 3, "reduce_bucket_size": 1000000000}})");
  const QString in_bf16 = lint_.summary();
  EXPECT_THAT(in_bf16.toStdString(), HasSubstr("of each GPU"));
  session_.document().set("/precision", "fp32");
  look();
  EXPECT_THAT(lint_.summary().toStdString(), HasSubstr("of each GPU"));
  EXPECT_NE(lint_.summary(), in_bf16);
  const Finding* bucket = finding("zero_optimization.reduce_bucket_size");
  ASSERT_NE(bucket, nullptr);
  EXPECT_THAT(bucket->costs.toStdString(), HasSubstr("GPU"));
}

TEST_F(LintSessionTest, PricesAFileWhoseWarmUpIsLeftToTheTrainer) {
  take_file(session_.document(),
            QStringLiteral(SHARDPLAN_SOURCE_DIR "/configs/deepspeed/zero2_offload_auto.json"));
  look();
  EXPECT_THAT(lint_.summary().toStdString(), HasSubstr("of each GPU"));
}

TEST_F(LintSessionTest, CountsInTheSingularToo) {
  drop(R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1,
           "zero_optimization": {"stage": 3}})");
  EXPECT_THAT(lint_.summary().toStdString(),
              testing::Not(testing::ContainsRegex("(^| )1 [a-z]+s[,;]")));
}

TEST_F(LintSessionTest, LeadsWithTheTitleWhereTheMessageIsNotTranslated) {
  QLocale::setDefault(QLocale(QStringLiteral("ja")));
  drop(kFlawed);
  QLocale::setDefault(QLocale(QStringLiteral("en")));
  const Finding* unknown = finding("zero_optimization.overlap_com");
  ASSERT_NE(unknown, nullptr);
  EXPECT_TRUE(unknown->message.startsWith(title_in_japanese("ds.unknown-key")))
      << unknown->message.toStdString();
}

TEST_F(LintSessionTest, SaysWhatAutoBecameAndWarns) {
  drop(R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1,
           "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto",
                                 "offload_param": {"device": "cpu"}}})");
  bool has_auto = false, has_warning = false;
  for (const Finding& f : lint_.findings().rows()) {
    has_auto = has_auto || (f.key == QStringLiteral("zero_optimization.reduce_bucket_size") &&
                            f.severity == QStringLiteral("auto"));
    has_warning = has_warning || f.level == Severity::warning;
  }
  EXPECT_TRUE(has_auto);
  EXPECT_TRUE(has_warning);
}

TEST_F(LintSessionTest, FixesAMistypedKeyInsideTheJob) {
  drop(kFlawed);
  const Finding* typo = finding("zero_optimization.overlap_com");
  ASSERT_NE(typo, nullptr);
  ASSERT_FALSE(typo->edits.empty());
  const auto row = static_cast<int>(typo - lint_.findings().rows().data());
  lint_.apply(row);
  look();
  EXPECT_EQ(finding("zero_optimization.overlap_com"), nullptr);
  const Json& job = session_.document().json();
  EXPECT_TRUE(job.at("framework").at("ds_config").at("zero_optimization").contains("overlap_comm"));
  EXPECT_TRUE(session_.document().is_modified());
}

TEST_F(LintSessionTest, AllFixesLeaveNothingToFix) {
  drop(kFlawed);
  ASSERT_GT(lint_.fixable(), 0);
  lint_.apply_all();
  look();
  for (const Finding& f : lint_.findings().rows())
    EXPECT_NE(f.level, Severity::error) << f.key.toStdString();
  ASSERT_TRUE(session_.answer().estimate);
}

TEST_F(LintSessionTest, FollowsAFileThatWasChangedAndDroppedAgain) {
  drop(kFlawed);
  EXPECT_NE(finding("zero_optimization.overlap_com"), nullptr);
  drop(R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1,
           "zero_optimization": {"stage": 1}})");
  EXPECT_EQ(finding("zero_optimization.overlap_com"), nullptr);
  EXPECT_EQ(session_.answer().job->plan.framework.deepspeed.zero.stage, 1);
}

TEST_F(LintSessionTest, AMalformedFileIsAFindingWithItsLine) {
  drop(R"({"bf16": {"enabled": true}})");
  folder_.file("ds_config.json", "{\n  \"bf16\": ");  // broken since
  session_.document().replace(session_.document().json());
  look();
  ASSERT_GT(lint_.findings().rowCount(), 0);
  EXPECT_EQ(lint_.findings().row(0).level, Severity::error);
}

// What says why nothing is priced is in lint's words, and not in the reports'.
TEST_F(LintSessionTest, WhyNothingIsPricedIsSaidInTheLanguageOfTheWindow) {
  QLocale::setDefault(QLocale(QStringLiteral("ja")));
  drop(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 7}})");
  look();
  const std::string summary = lint_.summary().toStdString();
  QLocale::setDefault(QLocale(QStringLiteral("en")));
  EXPECT_THAT(summary, HasSubstr("ファイルに誤りがある間、キーの費用は求めない"));
}

TEST_F(LintSessionTest, AFileThatIsGoneIsSaid) {
  drop(R"({"bf16": {"enabled": true}})");
  std::filesystem::remove(folder_.path("ds_config.json"));
  session_.document().replace(session_.document().json());
  look();
  EXPECT_THAT(lint_.summary().toStdString(), HasSubstr("ds_config.json"));
}

TEST_F(LintSessionTest, WithoutAFileTheJobsOwnDiagnosticsAreShown) {
  look();
  EXPECT_EQ(lint_.fixable(), 0);
  EXPECT_TRUE(lint_.summary().isEmpty());
}

}  // namespace
}  // namespace shardplan::gui
