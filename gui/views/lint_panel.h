// What is found in the ds_config: the list, all about the chosen row, and buttons that fix it.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QWidget>

#include "models/lint_session.h"

namespace shardplan::gui {

class LintPanel : public QWidget {
  Q_OBJECT

 public:
  explicit LintPanel(Session& session, QWidget* parent = nullptr);
  void refresh() { lint_.look(); }
  bool is_busy() const { return lint_.is_running(); }

 private:
  void show_findings();
  void show_row();
  int chosen() const { return table_->currentIndex().row(); }

  LintSession lint_;
  QTableView* table_;
  QLabel *summary_, *detail_;
  QPushButton *fix_, *fix_all_;
};

}  // namespace shardplan::gui
