// The application with its window on the screen, in English, and with the keyboard.
#pragma once

#include <gtest/gtest.h>

#include <QTest>

#include "application.h"
#include "gui_testing.h"

namespace shardplan::gui {

class WindowTest : public testing::Test {
 protected:
  WindowTest() : application_(*qApp) {
    application_.set_language(QStringLiteral("en"));
    window().show();
    window().activateWindow();  // no window manager does it under Xvfb
    EXPECT_TRUE(QTest::qWaitForWindowActive(&window(), static_cast<int>(kHangs.count())));
  }

  MainWindow& window() { return application_.window(); }
  Session& session() { return application_.session(); }
  QString page() { return MainWindow::page_names().value(window().page()); }

  Application application_;
};

}  // namespace shardplan::gui
