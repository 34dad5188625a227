// A person asks "will 7B fit on 4×40 GB?": types, clicks, and reads what the command line says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QTest>
#include <filesystem>

#include "application.h"
#include "base/format.h"
#include "gui_testing.h"
#include "models/text.h"
#include "support/subprocess.h"

namespace shardplan::gui {
namespace {

class Question : public testing::Test {
 protected:
  Question() : application_(*qApp) {
    application_.set_language(QStringLiteral("en"));
    window().show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&window()));
  }

  MainWindow& window() { return application_.window(); }
  template <typename Widget>
  Widget* find(const char* name) {
    auto* widget = window().findChild<Widget*>(QLatin1String(name));
    EXPECT_NE(widget, nullptr) << name;
    return widget;
  }
  void click(const char* button) {
    ++clicks_;
    QTest::mouseClick(find<QAbstractButton>(button), Qt::LeftButton);
  }
  QString label(const char* name) { return find<QLabel>(name)->text(); }

  /// What the command line answers to the same question.
  static Json asked(const std::vector<std::string>& arguments) {
    const Finished run = run_program(SHARDPLAN_PROGRAM, arguments);
    return Json::parse(run.out);
  }
  void expect_reads(const Json& j) {
    const auto bytes = [](const Json& n) { return text(format_bytes(n.get<std::int64_t>())); };
    const Json& gpu = j["gpu"];
    EXPECT_EQ(label("gpu_amount"),
              QStringLiteral("%1 of %2")
                  .arg(bytes(gpu["peak"]["device"]["point"]), bytes(gpu["usable_bytes"])));
    EXPECT_THAT(label("gpu_margin").toStdString(),
                testing::HasSubstr(bytes(gpu["peak"]["device"]["upper"]).toStdString()));
    const std::string word = j["verdict"]["gpu"]["verdict"];
    EXPECT_EQ(label("verdict").mid(2).toLower().replace(QLatin1Char(' '), QLatin1Char('_')),
              text(word));
    EXPECT_THAT(label("rates").toStdString(),
                testing::HasSubstr(format_seconds(j["time"]["step_seconds"].get<double>())));
  }

  Application application_;
  int clicks_ = 0;
};

TEST_F(Question, IsAnsweredInFiveClicksAndUnderASecond) {
  QDeadlineTimer second(1'000);
  QTest::keyClicks(find<QLineEdit>("cluster"), QStringLiteral("4x40GB"));
  click("next");
  QTest::keyClicks(find<QLineEdit>("model"), QStringLiteral("7B"));
  click("next");
  click("next");
  EXPECT_EQ(MainWindow::page_names().value(window().page()), QStringLiteral("verdict"));
  expect_reads(asked({"fit", "7B", "4x40GB", "--format", "json"}));
  EXPECT_LE(clicks_, 5);
  EXPECT_FALSE(second.hasExpired());
}

TEST_F(Question, IsAnsweredByTheKeyboardAlone) {
  EXPECT_TRUE(find<QLineEdit>("cluster")->hasFocus());
  QTest::keyClicks(qApp->focusWidget(), QStringLiteral("2x8xH100"));
  QTest::keyClick(qApp->focusWidget(), Qt::Key_Return);
  QTest::keyClicks(qApp->focusWidget(), QStringLiteral("llama-2-7b"));
  QTest::keyClick(qApp->focusWidget(), Qt::Key_Return);
  window().show_page(3);
  expect_reads(asked({"fit", "llama-2-7b", "2x8xH100", "--format", "json"}));
}

TEST_F(Question, ASliderAsksAgainAndTheCommandLineToCopySaysTheSame) {
  ask(application_.session(), kTitleQuestion);
  window().show_page(3);
  auto* stage = window().findChild<QSlider*>(QStringLiteral("/framework/zero_stage"));
  ASSERT_NE(stage, nullptr);
  stage->setFocus();
  QTest::keyClick(stage, Qt::Key_Left);
  window().show_page(4);
  const QStringList command = label("command").split(QLatin1Char(' '));
  ASSERT_EQ(command.value(0), QStringLiteral("shardplan"));
  std::vector<std::string> arguments;
  for (const QString& word : command.mid(1)) arguments.push_back(word.toStdString());
  EXPECT_THAT(arguments, testing::Contains("--zero-stage"));
  arguments.insert(arguments.end(), {"--format", "json"});
  window().show_page(3);
  expect_reads(asked(arguments));
}

TEST_F(Question, ABadFileIsAMessageAndTheWindowGoesOn) {
  const TemporaryFolder folder;
  window().take(QString::fromStdString(folder.file("broken.json", "{\"model\": ")));
  EXPECT_THAT(label("message").toStdString(), testing::HasSubstr("broken.json"));
  const std::string huge = folder.file("huge.json", "{");
  std::filesystem::resize_file(huge, 100'000'000);
  QDeadlineTimer second(1'000);
  window().take(QString::fromStdString(huge));
  EXPECT_THAT(label("message").toStdString(), testing::HasSubstr("huge.json"));
  EXPECT_FALSE(second.hasExpired());
}

TEST_F(Question, AFixIsAppliedWithOneClick) {
  ask(application_.session(), kTitleQuestion);
  window().show_page(3);
  Session& session = application_.session();
  ASSERT_TRUE(wait_for([&] { return !session.fixes().empty() && !session.is_finding_fixes(); }));
  const std::int64_t promised = session.fixes().front().after.device.point;
  QPushButton* apply = nullptr;
  for (auto* button : window().findChildren<QPushButton*>())
    if (apply == nullptr && button->text() == QStringLiteral("Apply")) apply = button;
  ASSERT_NE(apply, nullptr);
  QTest::mouseClick(apply, Qt::LeftButton);
  EXPECT_EQ(session.answer().estimate->device.point, promised);
}

TEST(Program, WritesPicturesWithoutADisplay) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kTitleQuestion);
  for (const QString& page : MainWindow::page_names()) {
    const std::string picture = folder.path(page.toStdString() + ".png");
    const Finished run = run_program(
        SHARDPLAN_GUI,
        {"--job", job, "--page", page.toStdString(), "--export", picture, "--size", "1366x768"},
        "QT_QPA_PLATFORM= DISPLAY=");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const QImage image(QString::fromStdString(picture));
    EXPECT_EQ(image.size(), QSize(1366, 768)) << page.toStdString();
  }
}

TEST(Program, SaysWhatIsWrongWithItsArguments) {
  const TemporaryFolder folder;
  const std::string bad = folder.file("bad.json", "{");
  EXPECT_EQ(run_program(SHARDPLAN_GUI, {"--job", bad, "--export", "x.png"}).exit_code, 3);
  const Finished page = run_program(SHARDPLAN_GUI, {"--page", "verdikt", "--export", "x.png"});
  EXPECT_EQ(page.exit_code, 2);
  EXPECT_THAT(page.err, testing::HasSubstr("verdict"));
}

}  // namespace
}  // namespace shardplan::gui
