// The application with its window on the screen, in English, and with the keyboard.
#pragma once

#include <gtest/gtest.h>

#include <QDropEvent>
#include <QMimeData>
#include <QTest>

#include "application.h"
#include "gui_testing.h"

namespace shardplan::gui {

/// Drags files over the window; if it takes them, they are dropped.
inline bool drop_on(QWidget& window, const std::vector<std::string>& paths) {
  QMimeData data;
  QList<QUrl> urls;
  for (const std::string& path : paths)
    urls.push_back(QUrl::fromLocalFile(QString::fromStdString(path)));
  data.setUrls(urls);
  QDragEnterEvent enter(QPoint(9, 9), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  enter.ignore();
  QApplication::sendEvent(&window, &enter);
  if (!enter.isAccepted()) return false;
  QDropEvent event(QPointF(9, 9), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &event);
  return true;
}

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
