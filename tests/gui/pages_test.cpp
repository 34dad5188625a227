// The pages around the wizard's steps in the real window: start, rent, validate, records, help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractSpinBox>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenuBar>
#include <QPushButton>
#include <QSlider>
#include <QSpinBox>
#include <QTabWidget>
#include <QTableView>
#include <QTextBrowser>
#include <set>

#include "job/fields.h"
#include "models/recent_files.h"
#include "support/subprocess.h"
#include "views/field_form.h"
#include "views/plot_view.h"
#include "window_testing.h"
#include "wizard/accuracy_page.h"
#include "wizard/rent_page.h"
#include "wizard/validate_page.h"

namespace shardplan::gui {
namespace {

constexpr int kRecordColumn = 3;

class Pages : public WindowTest {
 protected:
  template <typename Widget>
  Widget* find(const char* name) {
    auto* widget = window().template findChild<Widget*>(QLatin1String(name));
    EXPECT_NE(widget, nullptr) << name;
    return widget;
  }
  void click(const char* button) {
    QTest::mouseClick(find<QAbstractButton>(button), Qt::LeftButton);
  }
  void go_to(const char* name) {
    window().show_page(static_cast<int>(MainWindow::page_names().indexOf(QLatin1String(name))));
    QCoreApplication::processEvents();
  }
  std::string message() { return find<QLabel>("message")->text().toStdString(); }
  const Json& job() { return session().document().json(); }
  void click_point(PlotView* plot, int point) {
    const PlotData& data = plot->data();
    const PlotLayout layout(data, QSizeF(plot->size()), plot->font());
    const PlotPoint& p = data.points[static_cast<std::size_t>(point)];
    QTest::mouseClick(plot, Qt::LeftButton, {}, layout.place_of(p.x, p.y).toPoint());
  }

  const TemporaryFolder folder_;
};

TEST_F(Pages, AQuestionThatIsNotUnderstoodStaysAndIsMarked) {
  go_to("start");
  auto* box = find<QLineEdit>("question");
  QTest::keyClicks(box, QStringLiteral("7C on 4xA100-41GB"));
  QTest::keyClick(box, Qt::Key_Return);
  EXPECT_EQ(page(), QStringLiteral("start"));
  EXPECT_EQ(box->text(), QStringLiteral("7C on 4xA100-41GB"));
  EXPECT_TRUE(find<QLabel>("question_error")->isVisible());
  EXPECT_FALSE(box->accessibleDescription().isEmpty());
  box->clear();
  QTest::keyClicks(box, QStringLiteral("gpt2 on 1x24GB"));
  EXPECT_FALSE(find<QLabel>("question_error")->isVisible());
  click("answer");
  EXPECT_EQ(page(), QStringLiteral("verdict"));
  EXPECT_EQ(job().at("model").get<std::string>(), "gpt2");
}

TEST_F(Pages, FilesExamplesAndRecentJobsOpenFromTheStart) {
  const std::string file = folder_.file("mine.json", R"({"model": "gpt2", "cluster": "2x24GB"})");
  go_to("start");
  auto* box = find<QLineEdit>("question");
  box->setText(QString::fromStdString(file));
  QTest::keyClick(box, Qt::Key_Return);
  EXPECT_EQ(session().document().path().toStdString(), file);
  go_to("start");
  auto* examples = find<QListWidget>("examples");
  for (int i = 0; i < examples->count(); ++i) {
    go_to("start");
    examples->setFocus();
    examples->setCurrentRow(i);
    QTest::keyClick(examples, Qt::Key_Return);
    EXPECT_EQ(page(), QStringLiteral("verdict")) << examples->item(i)->text().toStdString();
    EXPECT_TRUE(session().answer().estimate) << examples->item(i)->text().toStdString();
  }
  go_to("start");
  session().document().start_new();  // nothing to be saved
  auto* recent = find<QListWidget>("recent");
  ASSERT_GT(recent->count(), 0);
  EXPECT_EQ(recent->item(0)->text(), QStringLiteral("mine.json"));
  QTest::mouseClick(recent->viewport(), Qt::LeftButton, {},
                    recent->visualItemRect(recent->item(0)).center());
  EXPECT_EQ(session().document().path().toStdString(), file);
}

TEST_F(Pages, AMachineToRentIsFoundChosenAndUsed) {
  ask(session(), R"({"model": "gpt2", "cluster": "1x24GB", "checkpointing": "full"})");
  go_to("rent");
  EXPECT_EQ(find<QLineEdit>("rent_models")->text(), QStringLiteral("gpt2"));
  auto* tokens = find<QLineEdit>("rent_tokens");
  tokens->setText(QStringLiteral("many"));
  click("rent_find");
  EXPECT_TRUE(find<QLabel>("rent_error")->isVisible());
  EXPECT_EQ(tokens->text(), QStringLiteral("many"));
  tokens->setText(QStringLiteral("2B"));
  click("rent_find");
  const RentSession& rent = window().findChild<RentPage*>()->rent();
  ASSERT_TRUE(wait_for(rent.work(), &Background::finished, [&] { return !rent.is_running(); }));
  EXPECT_FALSE(find<QLabel>("rent_error")->isVisible());
  auto* plot = find<PlotView>("rent_plot");
  ASSERT_FALSE(plot->data().points.empty());
  const int last = static_cast<int>(plot->data().points.size()) - 1;
  plot->select(last);
  const QString source = find<TextLabel>("rent_source")->text();
  EXPECT_THAT(source.toStdString(), testing::HasSubstr("an hour, on 20"));
  click("rent_use");
  EXPECT_EQ(page(), QStringLiteral("verdict"));
  EXPECT_TRUE(session().answer().estimate->verdict.fits);
  EXPECT_EQ(job().at("workload").at("tokens").get<double>(), 2e9);
}

TEST_F(Pages, AJobIsValidatedOnThisHostKeptAndFoundAmongTheRecords) {
  go_to("validate");
  auto* subject = find<QComboBox>("validate_subject");
  subject->setFocus();
  QTest::keyClick(subject, Qt::Key_Down);
  click("validate_start");
  const ValidatorRun& run = window().findChild<ValidatePage*>()->run();
  ASSERT_TRUE(wait_for(run, &ValidatorRun::stepped, [&] { return !run.steps().empty(); }));
  EXPECT_TRUE(find<QPushButton>("validate_stop")->isEnabled());
  ASSERT_TRUE(wait_for(run, &ValidatorRun::finished, [&] { return !run.is_running(); }));
  EXPECT_EQ(run.failure().toStdString(), "");
  EXPECT_EQ(run.steps().size(), 30U);
  EXPECT_EQ(find<PlotView>("loss")->data().points.size(), 30U);
  EXPECT_THAT(find<TextLabel>("validate_state")->text().toStdString(),
              testing::HasSubstr("step 30 of 30"));
  EXPECT_LT(*run.steps().back().loss, *run.steps().front().loss);
  click("keep_record");
  go_to("accuracy");
  auto* accuracy = window().findChild<AccuracyPage*>();
  const auto ready = [&] { return !accuracy->is_busy(); };
  while (!ready()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  auto* figure = find<QComboBox>("accuracy_figure");
  figure->setCurrentIndex(1);  // the allocated peak
  Q_EMIT figure->activated(1);
  find<QLineEdit>("accuracy_words")->setText(QStringLiteral("example"));
  auto* records = find<QTableView>("records");
  ASSERT_EQ(records->model()->rowCount(), 1);
  EXPECT_EQ(records->model()->index(0, kRecordColumn).data().toString(), QStringLiteral("example"));
  EXPECT_EQ(find<PlotView>("records_plot")->data().points.size(), 1U);
}

TEST_F(Pages, TheCommandForAClusterIsCopied) {
  ask(session(), R"({"model": "gpt2", "cluster": "2x8xH100", "checkpointing": "full"})");
  go_to("validate");
  click("validate_copy");
  EXPECT_THAT(QGuiApplication::clipboard()->text().toStdString(),
              testing::StartsWith("torchrun --nnodes 2"));
}

TEST_F(Pages, ARecordIsChosenInThePlotAndItsJobOpens) {
  ask(session(), R"({"model": "llama-3.2-1b", "cluster": "2xH200", "checkpointing": "full",
                     "framework": {"name": "deepspeed", "zero_stage": 2}})");
  go_to("accuracy");
  auto* accuracy = window().findChild<AccuracyPage*>();
  while (accuracy->is_busy()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  const std::string like = find<TextLabel>("accuracy_like")->text().toStdString();
  EXPECT_THAT(like, testing::HasSubstr("deepspeed stage 2"));
  auto* plot = find<PlotView>("records_plot");
  const std::size_t all = plot->data().points.size();
  QTest::mouseClick(find<QCheckBox>("accuracy_only_like"), Qt::LeftButton, {}, QPoint(8, 8));
  EXPECT_LT(plot->data().points.size(), all);
  ASSERT_FALSE(plot->data().points.empty());
  click_point(plot, 0);
  ASSERT_GE(plot->selected(), 0);
  const QString chosen = plot->data().points[static_cast<std::size_t>(plot->selected())].name;
  auto* records = find<QTableView>("records");
  EXPECT_EQ(records->currentIndex().siblingAtColumn(kRecordColumn).data().toString(), chosen);
  click("open_record");
  EXPECT_EQ(page(), QStringLiteral("verdict"));
  EXPECT_TRUE(session().answer().estimate);
}

TEST_F(Pages, RecordsAreDroppedOnTheWindow) {
  ASSERT_TRUE(drop_on(window(), {folder_.file("own.json", R"({"schema": "shardplan.record/1",
      "name": "own", "job": {"model": "gpt2", "cluster": "1xH200", "framework": "single"},
      "measured": {"allocated_peak": 3000000000}})")}));
  EXPECT_EQ(page(), QStringLiteral("accuracy"));
  EXPECT_THAT(message(), testing::HasSubstr("Records added: 1"));
}

TEST_F(Pages, ThePlotOfASearchHasOtherAxesNamesAndIsSaved) {
  ask(session(), R"({"model": "gpt2", "cluster": "2x40GB"})");
  go_to("plan");
  click("search");
  SearchSession& search = window().search();
  ASSERT_TRUE(wait_for(search.work(), &Background::finished, [&] { return !search.is_running(); }));
  auto* plot = find<PlotView>("front");
  ASSERT_FALSE(plot->data().points.empty());
  ASSERT_FALSE(plot->data().lines.empty());
  EXPECT_FALSE(plot->data().lines.front().points.empty());
  std::set<QString> names;
  for (const FoundRow& row : search.found().rows()) names.insert(row.name);
  EXPECT_EQ(names.size(), search.found().rows().size());  // plans that differ have other names
  const QString before = plot->data().x.title;
  auto* across = find<QComboBox>("across");
  across->setCurrentIndex(across->findData(static_cast<int>(Measure::gpus)));
  Q_EMIT across->activated(across->currentIndex());
  EXPECT_NE(plot->data().x.title, before);
  const std::string svg = folder_.path("plot.svg"), png = folder_.path("plot.png");
  EXPECT_TRUE(plot->save(QString::fromStdString(svg)));
  EXPECT_THAT(text_of(svg), testing::StartsWith("<svg"));
  EXPECT_TRUE(plot->save(QString::fromStdString(png)));
  EXPECT_EQ(QImage(QString::fromStdString(png)).size(), plot->size() * 2);
  EXPECT_FALSE(plot->save(QStringLiteral("/nowhere/plot.svg")));
}

TEST_F(Pages, WhatIsNoNumberStaysInTheMachinesFieldWithAMark) {
  ask(session(), kTitleQuestion);
  go_to("machine");
  auto* field = find<QLineEdit>("/cluster/gpu/memory_bandwidth");
  const Json before = job();
  field->setFocus();
  field->selectAll();
  QTest::keyClicks(field, QStringLiteral("fast"));
  QTest::keyClick(field, Qt::Key_Return);
  EXPECT_EQ(field->text(), QStringLiteral("fast"));
  EXPECT_EQ(job(), before);
  EXPECT_THAT(field->accessibleDescription().toStdString(), testing::HasSubstr("a number above 0"));
  field->selectAll();
  QTest::keyClicks(field, QStringLiteral("900"));
  QTest::keyClick(field, Qt::Key_Return);
  EXPECT_NE(job(), before);
  EXPECT_EQ(session().answer().the_cluster()->gpu.memory_bandwidth, 900e9);
  EXPECT_THAT(field->accessibleDescription().toStdString(), testing::Not(testing::HasSubstr("⚠")));
}

TEST_F(Pages, AMistakeOfTheTrainingIsToldAtItsField) {
  ask(session(), R"({"model": "gpt2", "cluster": "1x24GB", "workload": {"sequence_length": 0}})");
  go_to("training");
  ASSERT_TRUE(session().answer().error);
  EXPECT_TRUE(window().findChild<FieldForm*>()->shows_error());
  int told = 0;
  for (const auto* label : window().findChildren<QLabel*>())
    if (label->isVisible() && label->text().startsWith(QStringLiteral("⚠"))) ++told;
  EXPECT_EQ(told, 1);
  auto* length = window().findChild<FieldForm*>()->findChild<QSpinBox*>(
      QStringLiteral("/workload/sequence_length"));
  length->setValue(512);
  EXPECT_FALSE(session().answer().error);
  EXPECT_EQ(session().answer().job->plan.workload.sequence_length, 512);
}

TEST_F(Pages, EveryFieldHasHelpOnHoverAndALongerOne) {
  ask(session(), R"({"model": "llama-2-7b", "cluster": "2x8xA100-40GB", "checkpointing": "full"})");
  for (const char* name : {"machine", "model", "training", "verdict"}) {
    go_to(name);
    int fields = 0;
    for (auto* widget : window().findChildren<QWidget*>()) {
      const bool is_field = qobject_cast<QLineEdit*>(widget) || qobject_cast<QComboBox*>(widget) ||
                            qobject_cast<QAbstractSpinBox*>(widget) ||
                            qobject_cast<QSlider*>(widget);
      const bool is_part = widget->parent()->inherits("QAbstractSpinBox");
      if (!is_field || is_part || !widget->isVisible()) continue;
      ++fields;
      EXPECT_FALSE(widget->toolTip().isEmpty()) << widget->objectName().toStdString();
      EXPECT_GT(widget->whatsThis().size(), widget->accessibleName().size() + 7)
          << widget->objectName().toStdString();
    }
    EXPECT_GT(fields, 0) << name;
  }
}

TEST_F(Pages, TheHelpMenuShowsTermsShortcutsAndAbout) {
  const auto open = [&](const char* action) {
    for (auto* a : window().findChildren<QAction*>())
      if (a->text() == QString::fromUtf8(action)) a->trigger();
    QCoreApplication::processEvents();
  };
  open("&Terms…");
  open("&Keyboard shortcuts…");
  open("&About shardplan…");
  for (const char* name : {"about", "shortcuts", "terms"}) {
    auto* dialog = window().findChild<QDialog*>(QLatin1String(name));
    ASSERT_NE(dialog, nullptr) << name;
    EXPECT_TRUE(dialog->isVisible());
    EXPECT_GT(dialog->findChild<QTextBrowser*>()->toPlainText().size(), 100) << name;
  }
  auto* shortcuts = window().findChild<QDialog*>(QStringLiteral("shortcuts"));
  const QString keys = shortcuts->findChild<QTextBrowser*>()->toPlainText();
  EXPECT_TRUE(keys.contains(QStringLiteral("Ctrl+4")));
  EXPECT_TRUE(keys.contains(QStringLiteral("Ctrl+Shift+C")));
  auto* terms = window().findChild<QDialog*>(QStringLiteral("terms"));
  terms->findChild<QLineEdit*>(QStringLiteral("term"))->setText(QStringLiteral("ulysses"));
  EXPECT_TRUE(terms->findChild<QTextBrowser*>()->toPlainText().contains(QStringLiteral("heads")));
  for (const char* name : {"about", "shortcuts", "terms"})
    window().findChild<QDialog*>(QLatin1String(name))->close();
}

TEST_F(Pages, AnOptionOfTheTablesIsFoundChangedAndTakenBack) {
  ask(session(), R"({"model": "opt-1.3b", "cluster": "8xA100-80GB",
      "framework": {"name": "deepspeed", "zero_stage": 3},
      "workload": {"kind": "rlhf", "algorithm": "ppo", "micro_batch": 4, "prompt_length": 256,
                   "new_tokens": 256}})");
  go_to("training");
  find<QTabWidget>("training_tabs")->setCurrentIndex(1);
  auto* filter = find<QLineEdit>("option_filter");
  filter->setFocus();
  QTest::keyClicks(filter, QStringLiteral("models.critic.model"));
  auto* table = find<QTableView>("options");
  ASSERT_GE(table->model()->rowCount(), 1);
  ASSERT_EQ(table->model()->index(0, 0).data().toString(),
            QStringLiteral("workload.models.critic.model"));
  table->setCurrentIndex(table->model()->index(0, 1));
  EXPECT_TRUE(find<QLabel>("option_about")->text().contains(QStringLiteral("config.json")));
  table->setFocus();
  QTest::keyClick(table, Qt::Key_F2);
  auto* editor = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  ASSERT_NE(editor, nullptr);
  QTest::keyClicks(editor, QStringLiteral("opt-350m"));
  QTest::keyClick(editor, Qt::Key_Return);
  QCoreApplication::processEvents();  // what was typed is taken by a later event
  EXPECT_EQ(field_of(session().document().json(), "/workload/models/critic/model"),
            Json("opt-350m"));
  EXPECT_TRUE(session().answer().estimate);
  session().document().undo_stack().undo();
  EXPECT_FALSE(field_of(session().document().json(), "/workload/models/critic/model"));
  EXPECT_FALSE(table->model()->index(0, 1).data().toString().contains(QStringLiteral("opt-350m")));
}

}  // namespace
}  // namespace shardplan::gui
