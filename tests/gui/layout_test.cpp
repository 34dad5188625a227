// Every page in every language at 1366×768: nothing is cut off, and everything has a name.
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSlider>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QTest>

#include "application.h"
#include "gui_testing.h"

namespace shardplan::gui {
namespace {

constexpr QSize kSmall{1366, 768};
/// What is left of such a screen beside a panel and the window's title.
constexpr QSize kLeft{1366, 700};

class Layout : public testing::TestWithParam<const char*> {
 protected:
  Layout() : application_(*qApp) {
    application_.set_language(QString::fromLatin1(GetParam()));
    ask(application_.session(), R"({"model": "llama-2-7b", "cluster": "2x8xA100-40GB",
        "checkpointing": "full", "workload": {"micro_batch": 64}})");
    window().resize(kSmall);
    window().show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&window(), static_cast<int>(kHangs.count())));
    application_.session().find_fixes_now();
  }
  MainWindow& window() { return application_.window(); }

  /// What the page on screen has no room for.
  QStringList what_is_cut() {
    QStringList cut;
    for (const auto* label : window().findChildren<QLabel*>()) {
      if (!label->isVisible() || label->text().isEmpty()) continue;
      const int height =
          label->wordWrap() ? label->heightForWidth(label->width()) : label->sizeHint().height();
      const bool narrow = !label->wordWrap() && label->width() + 1 < label->sizeHint().width();
      if (label->height() + 1 < height || narrow) cut += label->text();
    }
    for (const auto* label : window().findChildren<TextLabel*>())
      if (label->isVisible() && label->is_cut()) cut += label->text();
    for (const auto* button : window().findChildren<QAbstractButton*>()) {
      if (!button->isVisible() || button->text().isEmpty()) continue;
      if (button->width() + 1 < button->minimumSizeHint().width()) cut += button->text();
    }
    return cut;
  }

  /// A page is laid out again by later events when another thread has answered: text may be cut
  /// for a moment, but does not stay so.
  void expect_nothing_cut() {
    constexpr int kLaidOut = 10'000;  // milliseconds
    for (int page = 0; page < MainWindow::page_names().size(); ++page) {
      window().show_page(page);
      QCoreApplication::processEvents();
      EXPECT_TRUE(QTest::qWaitFor([&] { return what_is_cut().empty(); }, kLaidOut))
          << page << ": " << what_is_cut().join(QLatin1Char('\n')).toStdString();
    }
  }

  Application application_;
};

TEST_P(Layout, FitsOnASmallScreen) {
  for (int page = 0; page < MainWindow::page_names().size(); ++page) {
    window().show_page(page);
    QCoreApplication::processEvents();
    EXPECT_LE(window().minimumSizeHint().width(), kSmall.width()) << page;
    EXPECT_LE(window().minimumSizeHint().height(), kSmall.height()) << page;
    EXPECT_EQ(window().size(), kSmall) << page;
  }
}

TEST_P(Layout, LeadsOnAndAnswersWhereAScreenHasAPanel) {
  window().resize(kLeft);
  for (int page = 0; page < MainWindow::page_names().size(); ++page) {
    window().show_page(page);
    QCoreApplication::processEvents();
    EXPECT_EQ(window().size(), kLeft)
        << page << ", at least " << window().minimumSizeHint().height();
    for (const char* name : {"back", "next", "summary"}) {
      const auto* widget = window().findChild<QWidget*>(QLatin1String(name));
      ASSERT_NE(widget, nullptr) << name;
      EXPECT_TRUE(widget->isVisible()) << name;
      const QRect place(widget->mapTo(&window(), QPoint()), widget->size());
      EXPECT_TRUE(window().rect().contains(place)) << page << ": " << name;
    }
  }
}

/// Smaller than the pages are: they scroll, and what leads on does not.
TEST_P(Layout, KeepsTheButtonsInSightOfALowWindow) {
  window().resize(900, 600);
  for (int page = 0; page < MainWindow::page_names().size(); ++page) {
    window().show_page(page);
    QCoreApplication::processEvents();
    EXPECT_EQ(window().size(), QSize(900, 600)) << page;
    for (const char* name : {"back", "next", "summary"}) {
      const auto* widget = window().findChild<QWidget*>(QLatin1String(name));
      const QRect place(widget->mapTo(&window(), QPoint()), widget->size());
      EXPECT_TRUE(window().rect().contains(place)) << page << ": " << name;
    }
  }
  expect_nothing_cut();
}

TEST_P(Layout, CutsNoTextOff) {
  for (const QSize& size : {kSmall, kLeft}) {
    window().resize(size);
    expect_nothing_cut();
  }
}

/// What a screen reader says of a widget that takes the keyboard.
bool has_name(const QWidget* widget) {
  if (!widget->accessibleName().isEmpty()) return true;
  if (const auto* button = qobject_cast<const QAbstractButton*>(widget))
    return !button->text().isEmpty();
  return false;
}

TEST_P(Layout, EverythingThatTakesTheKeyboardHasAName) {
  const auto wants_name = [](const QWidget* w) {
    return qobject_cast<const QAbstractButton*>(w) || qobject_cast<const QLineEdit*>(w) ||
           qobject_cast<const QComboBox*>(w) || qobject_cast<const QSlider*>(w) ||
           qobject_cast<const QAbstractItemView*>(w);
  };
  for (int page = 0; page < MainWindow::page_names().size(); ++page) {
    window().show_page(page);
    for (const auto* widget : window().findChildren<QWidget*>()) {
      const bool is_part = widget->objectName().startsWith(QStringLiteral("qt_")) ||
                           widget->inherits("QHeaderView") || widget->inherits("QTabBar") ||
                           widget->parent()->inherits("QTabBar") ||
                           widget->parent()->inherits("QAbstractSpinBox") ||
                           widget->parent()->inherits("QTableView") ||
                           widget->parent()->inherits("QComboBoxPrivateContainer") ||
                           widget->parent()->inherits("QLineEdit");
      if (is_part || !widget->isVisible() || !wants_name(widget)) continue;
      if ((widget->focusPolicy() & Qt::TabFocus) == 0) continue;
      EXPECT_TRUE(has_name(widget)) << page << ": " << widget->metaObject()->className() << " "
                                    << widget->objectName().toStdString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, Layout, testing::Values("en", "ja", "ko"));

}  // namespace
}  // namespace shardplan::gui
