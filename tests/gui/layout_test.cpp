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

  void expect_nothing_cut() {
    for (int page = 0; page < MainWindow::page_names().size(); ++page) {
      window().show_page(page);
      QCoreApplication::processEvents();
      QCoreApplication::processEvents();  // what answers on other threads need to be laid out again
      for (const auto* label : window().findChildren<QLabel*>()) {
        if (!label->isVisible() || label->text().isEmpty()) continue;
        const int needed =
            label->wordWrap() ? label->heightForWidth(label->width()) : label->sizeHint().height();
        EXPECT_GE(label->height() + 1, needed) << page << ": " << label->text().toStdString();
        if (label->wordWrap()) continue;
        EXPECT_GE(label->width() + 1, label->sizeHint().width())
            << page << ": " << label->text().toStdString();
      }
      for (const auto* label : window().findChildren<TextLabel*>()) {
        if (!label->isVisible()) continue;
        EXPECT_FALSE(label->is_cut()) << page << ": " << label->text().toStdString();
      }
      for (const auto* button : window().findChildren<QAbstractButton*>()) {
        if (!button->isVisible() || button->text().isEmpty()) continue;
        EXPECT_GE(button->width() + 1, button->minimumSizeHint().width())
            << page << ": " << button->text().toStdString();
      }
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
