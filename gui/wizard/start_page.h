// Where a person begins: one box for a question or a file, what was open last, and examples.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QListWidget>

#include "wizard/page.h"

namespace shardplan::gui {

class StartPage : public Page {
  Q_OBJECT

 public:
  explicit StartPage(Session& session, QWidget* parent = nullptr);
  void take_focus() override;

 Q_SIGNALS:
  void job_chosen(const Json& job);  ///< what a question means
  void file_chosen(const QString& path);
  void open_asked();
  void page_asked(const QString& name);

 protected:
  void refresh() override;

 private:
  QWidget* make_recent();
  QWidget* make_examples();
  QLayout* make_ways();
  void ask();

  QLineEdit* question_;
  QLabel* error_;
  QListWidget *recent_, *examples_;
};

}  // namespace shardplan::gui
