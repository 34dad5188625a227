// Every table under QAbstractItemModelTester, while its rows change.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "gui_testing.h"
#include "models/accuracy_models.h"
#include "models/catalogue_models.h"
#include "models/estimate_models.h"
#include "models/plan_table.h"

namespace shardplan::gui {
namespace {

constexpr auto kMode = QAbstractItemModelTester::FailureReportingMode::Fatal;

TEST(Tables, TheCatalogueListsEverythingThatIsBuiltIn) {
  const Workbench workbench = load_workbench();
  const std::unique_ptr<RowsModel<ModelRow>> models(CatalogueModels::models(nullptr));
  const std::unique_ptr<RowsModel<GpuRow>> gpus(CatalogueModels::gpus(workbench.hardware, nullptr));
  const std::unique_ptr<RowsModel<MachineRow>> machines(
      CatalogueModels::machines(workbench.hardware, nullptr));
  const QAbstractItemModelTester a(models.get(), kMode), b(gpus.get(), kMode),
      c(machines.get(), kMode);
  EXPECT_GT(models->rowCount(), 100);
  EXPECT_EQ(gpus->rowCount(), static_cast<int>(workbench.hardware.gpus.size()));
  EXPECT_EQ(machines->rowCount(), static_cast<int>(workbench.hardware.instances.size()));
}

TEST(Tables, TheEstimatesTablesFollowTheJob) {
  Session session;
  const std::unique_ptr<RowsModel<Share>> parts(EstimateModels::breakdown_model(nullptr));
  const std::unique_ptr<RowsModel<Fact>> traffic(
      EstimateModels::fact_model({QStringLiteral("a"), QStringLiteral("b")}, true, nullptr));
  const QAbstractItemModelTester a(parts.get(), kMode), b(traffic.get(), kMode);
  for (const char* job : {kTitleQuestion, R"({"model": "gpt2", "cluster": "H100"})",
                          R"({"model": "t5-base", "cluster": "2x8xH100"})"}) {
    ask(session, job);
    ASSERT_TRUE(session.answer().estimate);
    parts->set_rows(EstimateModels::breakdown(
        *session.answer().estimate, session.answer().job->plan, session.workbench().calibration));
    traffic->set_rows(EstimateModels::traffic(session.answer()));
    EXPECT_EQ(parts->rowCount(), static_cast<int>(parts->rows().size()));
    EXPECT_FALSE(parts->index(0, 0).data(Qt::ToolTipRole).toString().isEmpty());
    EXPECT_FALSE(parts->index(0, 1).data(Qt::AccessibleTextRole).toString().isEmpty());
  }
}

TEST(Tables, TheTensorsAddUpToTheModel) {
  Session session;
  ask(session, kTitleQuestion);
  const std::unique_ptr<RowsModel<TensorRow>> tensors(CatalogueModels::tensors(nullptr));
  const QAbstractItemModelTester tester(tensors.get(), kMode);
  const Model& model = *session.answer().the_model();
  tensors->set_rows(CatalogueModels::tensors_of(model));
  double sum = 0;
  for (const TensorRow& row : tensors->rows()) sum += row.count;
  EXPECT_EQ(sum, static_cast<double>(model.parameter_count()));
}

TEST(Tables, PlansSideBySideMarkWhatDiffers) {
  Session session;
  ask(session, kTitleQuestion);
  PlanTable table;
  const QAbstractItemModelTester tester(&table, kMode);
  const Job& job = *session.answer().job;
  const Calibration& calibration = session.workbench().calibration;
  table.set_plans(compare_stages(job.model, job.plan, calibration), calibration);
  EXPECT_EQ(table.columnCount(), 1 + static_cast<int>(kMostCompared));
  bool any_differs = false;
  for (int row = 0; row < table.rowCount(); ++row) {
    EXPECT_FALSE(table.index(row, 1).data(kDiffersRole).toBool());
    for (int column = 2; column < table.columnCount(); ++column) {
      const bool differs = table.index(row, column).data() != table.index(row, 1).data();
      EXPECT_EQ(table.index(row, column).data(kDiffersRole).toBool(), differs);
      any_differs = any_differs || differs;
      EXPECT_FALSE(table.index(row, column).data(Qt::ToolTipRole).toString().isEmpty()) << row;
    }
  }
  EXPECT_TRUE(any_differs);
  table.set_plans({}, calibration);
  EXPECT_EQ(table.rowCount(), 0);
}

TEST(Tables, AccuracyShowsEveryRecordsError) {
  Comparison near, far;
  near.name = "near";
  far.name = "far";
  const std::size_t device = index_of(Figure::device);
  near.predicted[device] = 101;
  far.predicted[device] = 150;
  near.measured[device] = far.measured[device] = 100;
  Accuracy accuracy;
  accuracy.comparisons = {near, far};
  const std::unique_ptr<RowsModel<RecordRow>> model(AccuracyModels::record_model(nullptr));
  const QAbstractItemModelTester tester(model.get(), kMode);
  model->set_rows(AccuracyModels::records(accuracy));
  ASSERT_EQ(model->rowCount(), 2);
  EXPECT_EQ(model->row(0).record, QStringLiteral("far"));
  EXPECT_EQ(model->row(0).error, QStringLiteral("+50.00 %"));
  EXPECT_EQ(model->row(1).error, QStringLiteral("+1.00 %"));
}

}  // namespace
}  // namespace shardplan::gui
