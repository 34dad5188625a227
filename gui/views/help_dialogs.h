// What the Help menu shows: terms, shortcuts, and about this program.
#pragma once

#include <QCoreApplication>
#include <QLineEdit>
#include <QTextBrowser>
#include <QWidget>

namespace shardplan::gui {

class HelpDialogs {
  Q_DECLARE_TR_FUNCTIONS(HelpDialogs)

 public:
  // Each stays open beside the window, and is gone when it is closed.
  static void show_terms(QWidget* parent);
  static void show_shortcuts(QWidget* parent);
  static void show_about(QWidget* parent);
  /// Keys that no menu shows, and what they do: rows of a table.
  static QString shortcuts();
};

}  // namespace shardplan::gui
