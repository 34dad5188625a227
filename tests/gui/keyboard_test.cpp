// Without a mouse: from the start to the verdict, and through every control of every page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QComboBox>
#include <QSlider>
#include <QStackedWidget>

#include "window_testing.h"

namespace shardplan::gui {
namespace {

class Keyboard : public WindowTest {
 protected:
  /// Keys go to whatever has the keyboard, as they do from one.
  static void press(Qt::Key key, Qt::KeyboardModifiers with = Qt::NoModifier) {
    QWidget* widget = QApplication::focusWidget();
    ASSERT_NE(widget, nullptr);
    QTest::keyClick(widget, key, with);
  }
  /// A button that its shortcut presses stays down for a moment before it acts.
  bool comes_to(int page) {
    auto* stack = window().findChild<QStackedWidget*>();
    return wait_for(*stack, &QStackedWidget::currentChanged,
                    [&] { return window().page() == page; });
  }
  static void type(const char* words) {
    QWidget* widget = QApplication::focusWidget();
    ASSERT_NE(widget, nullptr);
    QTest::keyClicks(widget, QString::fromUtf8(words));
  }
};

TEST_F(Keyboard, AsksTheWholeQuestionInTheFirstBox) {
  EXPECT_EQ(page(), QStringLiteral("start"));
  type("7B on 4x40GB");
  press(Qt::Key_Return);
  EXPECT_EQ(page(), QStringLiteral("verdict"));
  EXPECT_EQ(session().answer().job->plan.cluster.gpus_per_node, 4);
}

TEST_F(Keyboard, LeadsFromTheStartToTheVerdict) {
  press(Qt::Key_N, Qt::AltModifier);
  ASSERT_TRUE(comes_to(1));
  type("4x40GB");
  press(Qt::Key_Return);
  EXPECT_EQ(page(), QStringLiteral("model"));
  type("7B");
  press(Qt::Key_Return);
  EXPECT_EQ(page(), QStringLiteral("training"));
  press(Qt::Key_N, Qt::AltModifier);
  ASSERT_TRUE(comes_to(4));
  EXPECT_FALSE(window().findChild<TextLabel*>(QStringLiteral("verdict"))->text().isEmpty());
  EXPECT_TRUE(session().answer().estimate);
  EXPECT_EQ(session().answer().job->plan.cluster.gpus_per_node, 4);
  for (int at = 0; at < MainWindow::page_names().size(); ++at) {
    press(static_cast<Qt::Key>(Qt::Key_0 + at), Qt::ControlModifier);
    EXPECT_TRUE(comes_to(at)) << at;
  }
}

TEST_F(Keyboard, MovesASliderAndAppliesAFix) {
  ask(session(), kTooLarge);
  press(Qt::Key_4, Qt::ControlModifier);
  ASSERT_TRUE(comes_to(4));
  const auto focus = [&](auto wanted) {
    for (int presses = 0; presses < 100 && !wanted(QApplication::focusWidget()); ++presses)
      press(Qt::Key_Tab);
    return wanted(QApplication::focusWidget());
  };
  ASSERT_TRUE(
      focus([](QWidget* w) { return w->objectName() == QStringLiteral("/workload/micro_batch"); }));
  press(Qt::Key_Right);
  EXPECT_EQ(session().answer().job->plan.workload.micro_batch, 32);
  ASSERT_TRUE(
      wait_for(session(), &Session::fixes_changed, [&] { return !session().fixes().empty(); }));
  const std::int64_t promised = session().fixes().front().after.device.point;
  ASSERT_TRUE(
      focus([](QWidget* w) { return w->accessibleName().startsWith(QStringLiteral("Apply")); }));
  press(Qt::Key_Space);
  EXPECT_EQ(session().answer().estimate->device.point, promised);
}

/// Whether Tab stops at a widget that is seen and can be used.
bool is_stop(const QWidget* w) {
  return w->isVisible() && w->isEnabled() && (w->focusPolicy() & Qt::TabFocus) != 0 &&
         w->focusProxy() == nullptr && !w->isWindow();
}

TEST_F(Keyboard, ReachesEveryControlAndChangesNothingOnTheWay) {
  ask(session(), R"({"model": "llama-2-7b", "cluster": "2x8xA100-40GB", "checkpointing": "full"})");
  session().find_fixes_now();
  const Json job = session().document().json();
  for (const QString& name : MainWindow::page_names()) {
    window().show_page(static_cast<int>(MainWindow::page_names().indexOf(name)));
    QCoreApplication::processEvents();
    QSet<const QWidget*> missing;
    for (const auto* widget : window().findChildren<QWidget*>())
      if (is_stop(widget)) missing.insert(widget);
    EXPECT_GT(missing.size(), 8) << name.toStdString();
    for (int presses = 0; presses < 300 && !missing.isEmpty(); ++presses) {
      missing.remove(QApplication::focusWidget());
      press(Qt::Key_Tab);
    }
    for (const QWidget* widget : missing)
      ADD_FAILURE() << name.toStdString() << ": " << widget->metaObject()->className() << " "
                    << widget->accessibleName().toStdString() << " "
                    << widget->objectName().toStdString();
    EXPECT_EQ(session().document().json(), job) << name.toStdString();
  }
}

}  // namespace
}  // namespace shardplan::gui
