// A person asks "will 7B fit on 4×40 GB?": types, clicks, and reads what the command line says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QTabWidget>
#include <QTableView>
#include <filesystem>

#include "base/format.h"
#include "models/text.h"
#include "support/subprocess.h"
#include "window_testing.h"

namespace shardplan::gui {
namespace {

class Question : public WindowTest {
 protected:
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
  QString label(const char* name) { return find<TextLabel>(name)->text(); }

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
    expect_sentence(j["verdict"]);
    const Json& time = j["time"];
    const Json seconds = time.value("decode_seconds", time["step_seconds"]);
    if (seconds.get<double>() > 0) {
      EXPECT_THAT(label("rates").toStdString(),
                  testing::HasSubstr(format_seconds(seconds.get<double>())));
    }
    for (const Json& phase : time.value("phases", Json::array()))
      EXPECT_THAT(label("rates").toStdString(),
                  testing::HasSubstr(format_seconds(phase["seconds"].get<double>())));
    expect_parts(gpu["breakdown"], bytes);
    expect_phases(gpu["phases"], bytes);
  }
  /// The verdict's sentence begins with the answer.
  void expect_sentence(const Json& verdict) {
    const std::string word = verdict["gpu"]["verdict"];
    const bool gpu_decides = verdict["limited_by"].is_null() || verdict["limited_by"] == "gpu";
    const std::vector<std::string> starts =
        !gpu_decides || word == "does_not_fit" ? std::vector<std::string>{"No: "}
        : word == "tight" ? std::vector<std::string>{"Probably: ", "Probably not: "}
                          : std::vector<std::string>{"Yes, "};
    const std::string sentence = label("verdict").mid(2).toStdString();
    EXPECT_TRUE(std::any_of(starts.begin(), starts.end(), [&](const std::string& start) {
      return sentence.starts_with(start);
    })) << sentence;
    const bool is_open = verdict["host"]["verdict"] == "unknown";
    EXPECT_EQ(sentence.find("if each host has") != std::string::npos, is_open && word == "fits")
        << sentence;
  }
  /// The table of phases: what is alive when the model is built, then peak and end of each.
  template <typename Bytes>
  void expect_phases(const Json& phases, const Bytes& bytes) {
    auto* table = find<QTableView>("phases");
    auto* tabs = find<QTabWidget>("tables");
    tabs->setCurrentWidget(table);
    std::vector<QString> wanted, shown;
    for (const auto& [name, value] : phases.items()) wanted.push_back(bytes(value));
    for (int row = 0; row < table->model()->rowCount(); ++row)
      for (int column = row == 0 ? 2 : 1; column <= 2; ++column)
        shown.push_back(table->model()->index(row, column).data().toString());
    EXPECT_EQ(shown, wanted);
    tabs->setCurrentIndex(0);
  }
  /// The table of parts, category by category.
  template <typename Bytes>
  void expect_parts(const Json& breakdown, const Bytes& bytes) {
    auto* parts = find<QTableView>("parts");
    auto* tabs = find<QTabWidget>("tables");
    tabs->setCurrentWidget(parts);
    int row = 0;
    for (const Json& line : breakdown) {
      if (line["at_peak_bytes"].get<std::int64_t>() <= 0) continue;
      EXPECT_EQ(parts->model()->index(row++, 1).data().toString(), bytes(line["at_peak_bytes"]));
    }
    EXPECT_EQ(row, parts->model()->rowCount());
    tabs->setCurrentIndex(0);
  }

  int clicks_ = 0;
};

TEST_F(Question, IsAnsweredInFiveClicks) {
  click("step_machine");
  QTest::keyClicks(find<QLineEdit>("cluster"), QStringLiteral("4x40GB"));
  click("next");
  QTest::keyClicks(find<QLineEdit>("model"), QStringLiteral("7B"));
  click("next");
  click("next");
  EXPECT_EQ(MainWindow::page_names().value(window().page()), QStringLiteral("verdict"));
  expect_reads(asked({"fit", "7B", "4x40GB", "--format", "json"}));
  EXPECT_LE(clicks_, 5);
}

TEST_F(Question, ASliderAsksAgainAndTheCommandLineToCopySaysTheSame) {
  ask(application_.session(), kTitleQuestion);
  window().show_page(4);
  auto* stage = window().findChild<QSlider*>(QStringLiteral("/framework/zero_stage"));
  ASSERT_NE(stage, nullptr);
  stage->setFocus();
  QTest::keyClick(stage, Qt::Key_Left);
  window().show_page(5);
  const QStringList command = find<QLabel>("command")->text().split(QLatin1Char(' '));
  ASSERT_EQ(command.value(0), QStringLiteral("shardplan"));
  std::vector<std::string> arguments;
  for (const QString& word : command.mid(1)) arguments.push_back(word.toStdString());
  EXPECT_THAT(arguments, testing::Contains("--zero-stage"));
  arguments.insert(arguments.end(), {"--format", "json"});
  window().show_page(4);
  expect_reads(asked(arguments));
}

TEST_F(Question, EveryExampleJobReadsAsTheCommandLineSaysIt) {
  int jobs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/jobs")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    window().take(QString::fromStdString(entry.path().string()));
    EXPECT_EQ(MainWindow::page_names().value(window().page()), QStringLiteral("verdict"));
    expect_reads(asked({"estimate", entry.path().string(), "--format", "json"}));
    ++jobs;
  }
  EXPECT_GT(jobs, 20);
}

TEST_F(Question, AFixIsAppliedWithOneClick) {
  ask(application_.session(), kTooLarge);
  window().show_page(4);
  Session& session = application_.session();
  ASSERT_TRUE(wait_for(session, &Session::fixes_changed, [&] { return !session.fixes().empty(); }));
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
