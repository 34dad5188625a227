// A person's own records beside the built-in ones, and what is shown of all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gui_testing.h"
#include "models/accuracy_models.h"
#include "models/record_library.h"
#include "support/subprocess.h"

namespace shardplan::gui {
namespace {

const Workbench& workbench() {
  static const Workbench all = load_workbench();
  return all;
}

class Records : public testing::Test {
 protected:
  QString folder() const { return QString::fromStdString(folder_.path("records")); }
  std::string record(const std::string& name) const {
    return folder_.file(name + ".json", R"({"schema": "shardplan.record/1", "name": ")" + name +
                                            R"(", "job": {"model": "gpt2", "cluster": "1xH200",
        "framework": "single"}, "measured": {"allocated_peak": 3000000000}})");
  }
  static QStringList paths(const std::vector<std::string>& all) {
    QStringList out;
    for (const std::string& path : all) out.push_back(QString::fromStdString(path));
    return out;
  }
  const TemporaryFolder folder_;
};

TEST_F(Records, AreAddedKeptAndTakenAway) {
  RecordLibrary library(folder());
  int changes = 0;
  QObject::connect(&library, &RecordLibrary::changed, [&] { ++changes; });
  const std::size_t built_in = library.all(workbench().hardware).records.size();
  EXPECT_GT(built_in, 100U);
  const auto added =
      library.add(paths({record("mine"), folder_.file("bad.json", "{")}), workbench().hardware);
  EXPECT_EQ(added.records, 1);
  ASSERT_EQ(added.bad.size(), 1U);
  EXPECT_EQ(changes, 1);
  library.add(paths({record("mine")}), workbench().hardware);  // again: another record

  RecordLibrary another(folder());  // as the next start finds them
  const RecordList all = another.all(workbench().hardware);
  ASSERT_EQ(all.records.size(), built_in + 2);
  const Record& last = all.records.back();
  EXPECT_EQ(last.name, "mine");
  EXPECT_EQ(job_of_record(last.name, last.file).at("model").get<std::string>(), "gpt2");
  EXPECT_FALSE(another.remove(QString::fromStdString(folder_.path("mine.json"))));  // not its own
  EXPECT_TRUE(another.remove(QString::fromStdString(last.file)));
  EXPECT_EQ(another.all(workbench().hardware).records.size(), built_in + 1);
}

TEST_F(Records, OfEveryBuiltInFileHaveTheirJob) {
  Session session;
  for (const Record& r : built_in_records(workbench().hardware).records) {
    const Json job = job_of_record(r.name, r.file);
    ASSERT_TRUE(job.is_object()) << r.name << " in " << r.file;
  }
  EXPECT_TRUE(job_of_record("nobody", "/nowhere.json").is_null());
}

class Rows : public testing::Test {
 protected:
  static const Accuracy& accuracy() {
    static const Accuracy all =
        compare_with_records(built_in_records(workbench().hardware), AccuracyGroup::framework);
    return all;
  }
  const std::vector<RecordRow> all_ = AccuracyModels::records(accuracy());
};

TEST_F(Rows, AreFilteredByFigureKindWordsAndNames) {
  RecordFilter filter;
  filter.figure = Figure::step_seconds;
  const auto times = AccuracyModels::filtered(all_, filter);
  const auto timed = std::ranges::count_if(accuracy().comparisons, [](const Comparison& c) {
    return c.measured[index_of(Figure::step_seconds)].has_value();
  });
  EXPECT_EQ(times.size(), timed);
  EXPECT_LT(timed, accuracy().comparisons.size());  // some times were disturbed
  filter.kind = QStringLiteral("deepspeed");
  const auto deepspeed = AccuracyModels::filtered(all_, filter);
  EXPECT_GT(deepspeed.size(), 10U);
  EXPECT_LT(deepspeed.size(), times.size());
  filter.words = QStringLiteral("QWEN3 z3");
  for (const RecordRow& row : AccuracyModels::filtered(all_, filter)) {
    EXPECT_TRUE(row.record.contains(QStringLiteral("qwen3")));
    EXPECT_TRUE(row.framework.contains(QStringLiteral("stage 3")));
  }
  EXPECT_FALSE(AccuracyModels::filtered(all_, filter).empty());
  filter.names = {deepspeed.front().name};
  filter.words.clear();
  EXPECT_EQ(AccuracyModels::filtered(all_, filter).size(), 1U);
}

TEST_F(Rows, ArePointsOfTheirKindAroundTheDiagonal) {
  RecordFilter filter;
  filter.figure = Figure::allocated_peak;
  const auto rows = AccuracyModels::filtered(all_, filter);
  const QStringList kinds = AccuracyModels::kinds(all_);
  EXPECT_TRUE(kinds.contains(QStringLiteral("fsdp2")));
  const PlotData plot = AccuracyModels::plot(rows, kinds, {Qt::blue, Qt::red});
  ASSERT_EQ(plot.points.size(), rows.size());
  EXPECT_TRUE(plot.diagonal);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(kinds[plot.points[i].series], rows[i].kind);
    EXPECT_NEAR(plot.points[i].y / plot.points[i].x, 1 + rows[i].relative, 1e-9);
  }
  EXPECT_TRUE(AccuracyModels::plot({}, kinds, {Qt::blue}).points.empty());
}

TEST_F(Rows, LikeAJobAreThoseThatItsSentenceIsAbout) {
  Session session;
  ask(session, R"({"model": "llama-3.2-1b", "cluster": "2xH200", "checkpointing": "full",
                   "framework": {"name": "deepspeed", "zero_stage": 2}})");
  ASSERT_TRUE(session.answer().job);
  const MeasuredRuns runs(built_in_records(workbench().hardware));
  const Plan& plan = session.answer().job->plan;
  const SimilarRecords like = find_similar_records(plan, runs);
  ASSERT_EQ(static_cast<std::int64_t>(like.runs.size()), like.errors.records);
  for (const std::size_t run : like.runs)
    EXPECT_EQ(framework_group(runs.records()[run].job.plan), "deepspeed stage 2");
  const QString said = AccuracyModels::like_this(like, plan);
  EXPECT_TRUE(said.contains(QString::number(like.errors.records)));
  EXPECT_TRUE(said.contains(QStringLiteral("deepspeed stage 2")));
}

}  // namespace
}  // namespace shardplan::gui
