// The plan to run: the best ones as a search finds them, and what to take away.
#pragma once

#include <QLabel>
#include <QPlainTextEdit>
#include <QTabWidget>

#include "views/search_panel.h"
#include "wizard/page.h"

namespace shardplan::gui {

class PlanPage : public Page {
  Q_OBJECT

 public:
  explicit PlanPage(Session& session, QWidget* parent = nullptr);

  SearchSession& search() { return search_->search(); }
  bool is_busy() const override { return search_->search().is_running(); }
  void show_example() override { search_->search().start(Objective::throughput); }

 Q_SIGNALS:
  void copy_asked();  ///< the command line
  void save_asked();
  void report_asked();
  void export_asked();  ///< all files into a folder

 protected:
  void refresh() override;

 private:
  QWidget* make_exports();

  SearchPanel* search_;
  QLabel* command_;
  QTabWidget* files_;
};

}  // namespace shardplan::gui
