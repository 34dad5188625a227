// What a screen reader is told: the accessibility tree of every page, in every language.
#include <gtest/gtest.h>

#include <QAccessible>
#include <QTest>
#include <set>

#include "application.h"
#include "gui_testing.h"

namespace shardplan::gui {
namespace {

/// What a person uses, or reads a number from.
bool is_control(QAccessible::Role role) {
  static const std::set<QAccessible::Role> kControls{
      QAccessible::PushButton, QAccessible::Button,   QAccessible::ButtonMenu,
      QAccessible::CheckBox,   QAccessible::ComboBox, QAccessible::EditableText,
      QAccessible::SpinBox,    QAccessible::Slider,   QAccessible::PageTab,
      QAccessible::Table,      QAccessible::List,     QAccessible::ListItem,
      QAccessible::MenuItem,   QAccessible::Chart,    QAccessible::Graphic,
      QAccessible::ProgressBar};
  return kControls.contains(role);
}

class Tree : public testing::TestWithParam<const char*> {
 protected:
  Tree() : application_(*qApp) {
    application_.set_language(QString::fromLatin1(GetParam()));
    ask(application_.session(), R"({"model": "llama-2-7b", "cluster": "2x8xA100-40GB",
        "checkpointing": "full", "framework": {"name": "deepspeed", "zero_stage": 3,
        "offload_optimizer": "cpu"}})");
    window().show();
    EXPECT_TRUE(QTest::qWaitForWindowExposed(&window(), static_cast<int>(kHangs.count())));
    application_.session().find_fixes_now();
  }
  MainWindow& window() { return application_.window(); }

  /// Counts the controls below, and says which of them have no name, by the way to them.
  void look(QAccessibleInterface* at, const std::string& way) {
    if (at == nullptr || !at->isValid() || at->state().invisible) return;
    const QObject* object = at->object();
    const std::string here =
        way + "/" + (object ? object->metaObject()->className() : std::to_string(at->role()));
    if (is_control(at->role())) {
      ++controls_;
      EXPECT_FALSE(at->text(QAccessible::Name).isEmpty()) << here;
    }
    // Cells are what a table says; the line of a spin box is the spin box.
    if (at->role() == QAccessible::Table || at->role() == QAccessible::SpinBox ||
        at->role() == QAccessible::ComboBox)
      return;
    for (int child = 0; child < at->childCount(); ++child) look(at->child(child), here);
  }

  int controls_ = 0;
  Application application_;
};

TEST_P(Tree, EveryControlHasARoleAndAName) {
  for (int page = 0; page < MainWindow::page_names().size(); ++page) {
    window().show_page(page);
    QCoreApplication::processEvents();
    SCOPED_TRACE(MainWindow::page_names().value(page).toStdString());
    controls_ = 0;
    look(QAccessible::queryAccessibleInterface(&window()), "");
    EXPECT_GT(controls_, 15);  // the steps and the menus alone are eleven
  }
}

TEST_P(Tree, EveryWidgetThatTakesTheKeyboardIsAControl) {
  for (int page = 0; page < MainWindow::page_names().size(); ++page) {
    window().show_page(page);
    QCoreApplication::processEvents();
    for (auto* widget : window().findChildren<QWidget*>()) {
      if (!widget->isVisible() || (widget->focusPolicy() & Qt::TabFocus) == 0 ||
          widget->focusProxy() != nullptr || widget->parent()->inherits("QAbstractSpinBox"))
        continue;
      const QAccessibleInterface* seen = QAccessible::queryAccessibleInterface(widget);
      ASSERT_NE(seen, nullptr);
      const bool is_tabs = seen->role() == QAccessible::PageTabList;  // each tab has its name
      EXPECT_TRUE(is_tabs || is_control(seen->role()))
          << page << ": " << widget->metaObject()->className() << " "
          << widget->objectName().toStdString() << ", role " << seen->role();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, Tree, testing::Values("en", "ja", "ko"));

}  // namespace
}  // namespace shardplan::gui
