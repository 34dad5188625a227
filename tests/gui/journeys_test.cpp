// What a person does from end to end in the real window, with mouse and keyboard: the journeys of
// docs/how-to/gui.md that have no file of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QClipboard>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenuBar>
#include <QMessageBox>
#include <QPushButton>
#include <QSettings>
#include <QTableView>
#include <filesystem>
#include <set>

#include "models/preferences.h"
#include "render/describe.h"
#include "support/subprocess.h"
#include "window_testing.h"
#include "wizard/compare_page.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Journey : public WindowTest {
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
  void click_text(const QString& text) {
    for (auto* button : window().findChildren<QPushButton*>())
      if (button->isVisible() && button->text() == text)
        return QTest::mouseClick(button, Qt::LeftButton);
    ADD_FAILURE() << "no button " << text.toStdString();
  }
  std::string message() { return find<QLabel>("message")->text().toStdString(); }
  const Json& job() { return session().document().json(); }
  void go_to(const char* name) {
    window().show_page(static_cast<int>(MainWindow::page_names().indexOf(QLatin1String(name))));
    QCoreApplication::processEvents();
  }
  void press(Qt::Key key, Qt::KeyboardModifiers with) {
    QWidget* widget = QApplication::focusWidget();
    QTest::keyClick(widget != nullptr ? widget : &window(), key, with);
    QCoreApplication::processEvents();
  }

  /// Answers the next dialogs of these kinds, in their order, as they come up.
  void answer_dialogs(std::vector<std::function<bool(QWidget&)>> answers) {
    answers_ = std::move(answers);
    answered_ = 0;
    QObject::connect(&clock_, &QTimer::timeout, &clock_, [this] {
      QWidget* dialog = QApplication::activeModalWidget();
      if (dialog == nullptr || !dialog->isVisible() || answered_ == answers_.size()) return;
      // An answer may bring up the next dialog: the clock has to go on meanwhile.
      QMetaObject::invokeMethod(
          dialog,
          [this, dialog, now = answered_++] {
            if (!answers_[now](*dialog)) answered_ = now;
          },
          Qt::QueuedConnection);
    });
    constexpr int kOften = 20;  // milliseconds
    clock_.start(kOften);
  }
  void expect_all_answered() {
    clock_.stop();
    clock_.disconnect();
    EXPECT_EQ(answered_, answers_.size());
  }
  static std::function<bool(QWidget&)> choose(const std::string& path) {
    return [path](QWidget& dialog) {
      auto* files = qobject_cast<QFileDialog*>(&dialog);
      if (files == nullptr) return false;
      auto* name = files->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"));
      // Before the field has the keyboard, Qt adds to its text what is selected in the list.
      if (!name->hasFocus()) return false;
      name->setText(QString::fromStdString(path));
      return QMetaObject::invokeMethod(files, "accept", Qt::DirectConnection);
    };
  }
  static std::function<bool(QWidget&)> press_button(QMessageBox::StandardButton button) {
    return [button](QWidget& dialog) {
      auto* box = qobject_cast<QMessageBox*>(&dialog);
      if (box == nullptr || box->button(button) == nullptr) return false;
      box->button(button)->click();
      return true;
    };
  }
  static std::function<bool(QWidget&)> press_text(const QString& text) {
    return [text](QWidget& dialog) {
      for (auto* button : dialog.findChildren<QPushButton*>())
        if (button->text() == text) {
          button->click();
          return true;
        }
      return false;
    };
  }
  static std::function<bool(QWidget&)> cancel() {
    return [](QWidget& dialog) {
      auto* files = qobject_cast<QFileDialog*>(&dialog);
      if (files == nullptr) return false;
      files->reject();
      return true;
    };
  }
  void trigger(const QString& text) {
    for (auto* action : window().findChildren<QAction*>())
      if (action->text() == text) return action->trigger();
    ADD_FAILURE() << "no action " << text.toStdString();
  }

  const TemporaryFolder folder_;

 private:
  std::vector<std::function<bool(QWidget&)>> answers_;
  std::size_t answered_ = 0;
  QTimer clock_;
};

TEST_F(Journey, AFixIsAppliedUndoneAndDoneAgain) {
  ask(session(), kTooLarge);
  go_to("verdict");
  ASSERT_TRUE(
      wait_for(session(), &Session::fixes_changed, [&] { return !session().fixes().empty(); }));
  const Json before = job();
  click_text(QStringLiteral("Apply"));
  const Json after = job();
  EXPECT_NE(after, before);
  press(Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(job(), before);
  press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(job(), after);
}

TEST_F(Journey, WhatIsTypedIsUndoneAtOnceFromTheFieldItself) {
  go_to("machine");
  const Json before = job();
  auto* field = find<QLineEdit>("cluster");
  field->setFocus();
  QTest::keyClicks(field, QStringLiteral("4x40GB"));
  EXPECT_EQ(job().at("cluster").get<std::string>(), "4x40GB");
  press(Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(job(), before);
  EXPECT_EQ(field->text(), QString());
}

TEST_F(Journey, ADroppedConfigurationSaysWhatItChangesAndIsUndone) {
  ask(session(), R"({"model": "llama-2-7b", "cluster": "4xA100-40GB", "precision": "fp16-master",
                     "workload": {"micro_batch": 2}})");
  const Json before = job();
  ASSERT_TRUE(
      drop_on(window(), {SHARDPLAN_SOURCE_DIR "/configs/deepspeed/zero2_offload_auto.json"}));
  EXPECT_THAT(message(), HasSubstr("zero2_offload_auto.json"));
  EXPECT_EQ(job().at("precision").get<std::string>(), "fp16-master");  // what is "auto" stays
  EXPECT_EQ(job().at("workload").at("micro_batch").get<int>(), 2);
  click("notice_undo");
  EXPECT_EQ(job(), before);
  ASSERT_TRUE(drop_on(
      window(), {folder_.file("fixed.json",
                              R"({"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 4,
          "zero_optimization": {"stage": 2}})")}));
  EXPECT_NE(job(), before);
  ASSERT_TRUE(find<QPushButton>("notice_details")->isVisible());
  std::string listed;
  answer_dialogs({[&](QWidget& dialog) {
    auto* box = qobject_cast<QMessageBox*>(&dialog);
    if (box == nullptr) return false;
    listed = box->text().toStdString();
    box->accept();
    return true;
  }});
  click("notice_details");
  expect_all_answered();
  EXPECT_THAT(listed, HasSubstr("precision: fp16-master → not given"));
  EXPECT_THAT(listed, HasSubstr("workload.micro_batch: 2 → not given"));
  click("notice_undo");
  EXPECT_EQ(job(), before);
}

TEST_F(Journey, AJobIsSavedUnderANameAndNeverOverAnotherUnasked) {
  ask(session(), kTitleQuestion);
  const std::string taken = folder_.file("taken.json", "precious");
  answer_dialogs({choose(folder_.path("fresh"))});
  trigger(QStringLiteral("Save &as…"));
  expect_all_answered();
  EXPECT_TRUE(fs::exists(folder_.path("fresh.json")));  // the suffix was added
  EXPECT_THAT(message(), HasSubstr("Saved fresh.json"));
  EXPECT_FALSE(window().isWindowModified());

  answer_dialogs({choose(folder_.path("taken")), press_button(QMessageBox::No), cancel()});
  trigger(QStringLiteral("Save &as…"));
  expect_all_answered();
  EXPECT_EQ(text_of(taken), "precious");

  answer_dialogs({choose(folder_.path("taken")), press_button(QMessageBox::Yes)});
  trigger(QStringLiteral("Save &as…"));
  expect_all_answered();
  EXPECT_EQ(Json::parse(text_of(taken)), job());
}

TEST_F(Journey, FilesOfAPlanAreExportedOverOthersOnlyWhenAsked) {
  ask(session(), kTitleQuestion);
  const std::string mine = folder_.file("launch.sh", "mine");
  go_to("plan");
  answer_dialogs({choose(folder_.path("")), press_button(QMessageBox::Cancel)});
  click_text(QStringLiteral("&Export these files…"));
  expect_all_answered();
  EXPECT_EQ(text_of(mine), "mine");
  EXPECT_FALSE(fs::exists(folder_.path("job.json")));
  answer_dialogs({choose(folder_.path("")), press_text(QStringLiteral("&Overwrite"))});
  click_text(QStringLiteral("&Export these files…"));
  expect_all_answered();
  EXPECT_NE(text_of(mine), "mine");
  EXPECT_TRUE(fs::exists(folder_.path("job.json")));
  EXPECT_NE(fs::status(mine).permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_THAT(message(), HasSubstr("files into"));
}

TEST_F(Journey, TheCommandLineIsCopiedAndRuns) {
  ask(session(), kTitleQuestion);
  go_to("plan");
  click_text(QStringLiteral("&Copy the command line"));
  const std::string copied = QGuiApplication::clipboard()->text().toStdString();
  EXPECT_THAT(message(), HasSubstr(copied));
  std::vector<std::string> words;
  for (const QString& word : QString::fromStdString(copied).split(QLatin1Char(' ')).mid(1))
    words.push_back(word.toStdString());
  words.insert(words.end(), {"--format", "json"});
  const Json said = Json::parse(run_program(SHARDPLAN_PROGRAM, words).out);
  EXPECT_EQ(said["gpu"]["peak"]["device"]["point"].get<std::int64_t>(),
            session().answer().estimate->device.point);
}

TEST_F(Journey, PlansThatWereFoundAreUsedAndStay) {
  ask(session(), R"({"model": "gpt2", "cluster": "2x40GB"})");
  go_to("plan");
  click("search");
  SearchSession& search = window().search();
  ASSERT_TRUE(wait_for(search.work(), &Background::finished, [&] { return !search.is_running(); }));
  const int found = search.found().rowCount();
  ASSERT_GT(found, 0);
  const Json before = job();
  click_text(QStringLiteral("&Use the selected plan"));
  EXPECT_EQ(session().answer().estimate->device.point,
            search.result()->front.front().estimate.device.point);
  EXPECT_EQ(search.found().rowCount(), found);
  session().document().save(QString::fromStdString(folder_.path("job.json")));
  EXPECT_EQ(search.found().rowCount(), found);  // saving makes no other job of it
  Q_EMIT window().theme_chosen(static_cast<int>(Theme::dark));
  EXPECT_EQ(window().search().found().rowCount(), found);
  application_.set_language(QStringLiteral("ja"));
  EXPECT_EQ(window().search().found().rowCount(), found);
  EXPECT_EQ(page(), QStringLiteral("plan"));
  session().document().undo_stack().undo();
  EXPECT_EQ(job(), before);
  EXPECT_EQ(window().search().found().rowCount(), found);
  application_.set_theme(Theme::system);
}

TEST_F(Journey, FourPlansAreComparedAndNoneOfAJobThatIsGone) {
  ask(session(), kTitleQuestion);
  go_to("compare");
  click_text(QStringLiteral("&Keep this plan for comparison"));
  auto* list = find<QListWidget>("plans");
  const auto checked = [&] {
    int count = 0;
    for (int i = 0; i < list->count(); ++i)
      count += list->item(i)->checkState() == Qt::Checked ? 1 : 0;
    return count;
  };
  EXPECT_EQ(checked(), 4);
  const int with_kept = list->count();
  EXPECT_EQ(list->item(with_kept - 1)->flags() & Qt::ItemIsUserCheckable, Qt::NoItemFlags);
  list->item(0)->setCheckState(Qt::Unchecked);
  EXPECT_NE(list->item(with_kept - 1)->flags() & Qt::ItemIsUserCheckable, Qt::NoItemFlags);
  session().document().set("/model", "gpt2");
  for (int i = 0; i < list->count(); ++i)
    EXPECT_THAT(list->item(i)->text().toStdString(), testing::Not(HasSubstr("6.74 B")));
  session().document().set("/model", nullptr);
  EXPECT_EQ(list->count(), 0);
  session().document().undo_stack().undo();
  session().document().undo_stack().undo();
  EXPECT_EQ(list->count(), with_kept);
}

TEST_F(Journey, KeptPlansThatDifferHaveNamesThatDo) {
  ask(session(), kTitleQuestion);
  go_to("compare");
  click_text(QStringLiteral("&Keep this plan for comparison"));
  session().document().set("/workload/micro_batch", 2);
  click_text(QStringLiteral("&Keep this plan for comparison"));
  session().document().set("/optimizer", "adafactor");  // what the name does not say
  click_text(QStringLiteral("&Keep this plan for comparison"));
  std::set<std::string> names;
  for (const KeptPlan& kept : window().findChild<ComparePage*>()->kept())
    names.insert(kept.plan.name);
  EXPECT_EQ(names.size(), 3U);
}

TEST_F(Journey, AKeptPlanIsComparedAndStaysInAnotherLanguage) {
  ask(session(), kTitleQuestion);
  go_to("compare");
  click_text(QStringLiteral("&Keep this plan for comparison"));
  application_.set_language(QStringLiteral("ko"));
  EXPECT_EQ(window().findChild<ComparePage*>()->kept().size(), 1U);
  EXPECT_EQ(page(), QStringLiteral("compare"));
}

TEST_F(Journey, AnotherThemeRepaintsTheSameWindow) {
  ask(session(), kTitleQuestion);
  go_to("verdict");
  const MainWindow* same = &window();
  auto* verdict = find<TextLabel>("verdict");
  for (const Theme theme : {Theme::dark, Theme::light}) {
    application_.set_theme(theme);
    EXPECT_EQ(&window(), same);
    const Fit fit = overall(session().answer().estimate->verdict);
    EXPECT_TRUE(QTest::qWaitFor(
        [&] {
          return is_dark(window().palette()) == (theme == Theme::dark) &&
                 verdict->palette().color(QPalette::WindowText) ==
                     verdict_colour(fit, window().palette());
        },
        static_cast<int>(kHangs.count())));
  }
  application_.set_theme(Theme::system);
}

TEST(Reopening, FindsEverythingAsItWasLeft) {
  QSize size(1400, 800);
  Json left;
  {
    Application application(*qApp);
    application.resume();
    Q_EMIT application.window().language_chosen(QStringLiteral("ko"));
    Q_EMIT application.window().theme_chosen(static_cast<int>(Theme::dark));
    QCoreApplication::processEvents();
    MainWindow& window = application.window();
    ask(application.session(), R"({"model": "gpt2", "cluster": "2x40GB"})");
    window.resize(size);
    window.show_page(5);
    window.show();
    size = window.size();
    SearchSession& search = window.search();
    search.start(Objective::memory);
    ASSERT_TRUE(
        wait_for(search.work(), &Background::finished, [&] { return !search.is_running(); }));
    search.use(0);
    left = application.session().document().json();
    const TemporaryFolder folder;  // what is saved is asked about no more
    application.session().document().save(QString::fromStdString(folder.path("job.json")));
    window.close();
  }
  {
    Application application(*qApp);
    application.resume();
    MainWindow& window = application.window();
    EXPECT_EQ(QLocale().language(), QLocale::Korean);
    EXPECT_TRUE(is_dark(QApplication::palette()));
    EXPECT_EQ(application.session().document().json(), left);
    EXPECT_EQ(MainWindow::page_names().value(window.page()), QStringLiteral("plan"));
    if (QGuiApplication::platformName() == QStringLiteral("xcb")) {  // the other's screen is small
      EXPECT_EQ(window.size(), size);
    }
    SearchSession& search = window.search();
    ASSERT_TRUE(
        wait_for(search.work(), &Background::finished, [&] { return !search.is_running(); }));
    EXPECT_GT(search.found().rowCount(), 0);
    EXPECT_EQ(search.outcome()->objective, Objective::memory);
    application.set_theme(Theme::system);
  }
  QSettings().clear();
}

}  // namespace
}  // namespace shardplan::gui
