// Files that are dropped on the window, good and bad, and what closing it leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <filesystem>

#include "support/subprocess.h"
#include "support/threads.h"
#include "window_testing.h"

namespace shardplan::gui {
namespace {

using testing::HasSubstr;

class Dropped : public testing::Test {
 protected:
  Dropped() : application_(*qApp) { application_.set_language(QStringLiteral("en")); }

  MainWindow& window() { return application_.window(); }
  std::string message() {
    return window().findChild<QLabel*>(QStringLiteral("message"))->text().toStdString();
  }
  QString page() { return MainWindow::page_names().value(window().page()); }
  const Json& job() { return application_.session().document().json(); }

  bool drop(const std::vector<std::string>& paths) { return drop_on(window(), paths); }

  const TemporaryFolder folder_;
  Application application_;
};

TEST_F(Dropped, AJobAModelAndAConfigurationAreToldApart) {
  EXPECT_TRUE(drop({folder_.file("job.json", kTitleQuestion)}));
  EXPECT_EQ(page(), QStringLiteral("verdict"));
  EXPECT_EQ(job().at("model").get<std::string>(), "7B");
  const std::string model = folder_.file("config.json", R"({"model_type": "gpt2"})");
  EXPECT_TRUE(drop({model}));
  EXPECT_EQ(page(), QStringLiteral("model"));
  EXPECT_EQ(job().at("model").get<std::string>(), model);
  const std::string config = folder_.file("ds.json", R"({"zero_optimization": {"stage": 2}})");
  EXPECT_TRUE(drop({config}));
  EXPECT_EQ(page(), QStringLiteral("training"));
  EXPECT_EQ(job().at("framework").at("ds_config").get<std::string>(), config);
  EXPECT_THAT(message(), HasSubstr("ds.json is used"));
}

TEST_F(Dropped, WhatCannotBeReadIsAMessageAndTheJobStays) {
  drop({folder_.file("job.json", kTitleQuestion)});
  const Json before = job();
  const std::string huge = folder_.file("huge.json", "{");
  std::filesystem::resize_file(huge, 100'000'000);
  const std::string deep = folder_.file("deep.json", std::string(100'000, '['));
  const std::string binary = folder_.file("model.safetensors", std::string("\x08\0\0\xff", 4));
  for (const std::string& bad :
       {huge, deep, binary, folder_.file("broken.json", "{\"model\": "),
        folder_.file("empty.json", ""), folder_.file("other.json", R"({"a": 1})"),
        folder_.path("nowhere.json")}) {
    EXPECT_TRUE(drop({bad}));
    EXPECT_THAT(message(), HasSubstr(std::filesystem::path(bad).filename().string()));
    EXPECT_EQ(job(), before);
  }
  EXPECT_FALSE(drop({huge, deep}));  // which of them?
  EXPECT_FALSE(drop({}));
}

/// A trainer's file does not say which GPUs: the machine page asks, and Next takes the file.
TEST_F(Dropped, ATrainersFileWithoutAMachineWaitsForOne) {
  const std::string file =
      std::string(SHARDPLAN_SOURCE_DIR) + "/configs/trainers/axolotl-qlora.yaml";
  EXPECT_TRUE(drop({file}));
  EXPECT_EQ(page(), QStringLiteral("machine"));
  EXPECT_THAT(message(), HasSubstr("axolotl-qlora.yaml does not say which GPUs"));
  auto* next = window().findChild<QPushButton*>(QStringLiteral("next"));
  application_.session().document().set("/cluster", Json("1xRTX4090"));
  next->click();
  EXPECT_EQ(page(), QStringLiteral("verdict"));
  EXPECT_EQ(job().at("trainer"), Json("axolotl"));
  EXPECT_EQ(job().at("cluster"), Json("1xRTX4090"));
  window().show_page(static_cast<int>(MainWindow::page_names().indexOf(QStringLiteral("machine"))));
  next->click();  // once
  EXPECT_EQ(page(), QStringLiteral("model"));
}

TEST_F(Dropped, AJobWithAMistakeOpensAndSaysWhatIsWrong) {
  drop({folder_.file("job.json", R"({"model": "7B", "cluster": "4xA100-41GB"})")});
  EXPECT_FALSE(application_.session().answer().job);
  EXPECT_EQ(application_.session().answer().error->key, "cluster");
}

TEST(Closing, DuringASearchLeavesNoThread) {
  {  // the platform starts threads of its own with the first window, which stay
    Application first(*qApp);
    first.window().show();
    QCoreApplication::processEvents();
  }
  const int before = thread_count();
  {
    Application application(*qApp);
    application.set_language(QStringLiteral("en"));
    ask(application.session(), R"({"model": "llama-2-70b", "cluster": "8x8xH100"})");
    MainWindow& window = application.window();
    window.show_page(5);
    window.show();
    QTest::mouseClick(window.findChild<QPushButton*>(QStringLiteral("search")), Qt::LeftButton);
    EXPECT_GT(thread_count(), before);
  }
  EXPECT_TRUE(falls_to(before));
}

}  // namespace
}  // namespace shardplan::gui
