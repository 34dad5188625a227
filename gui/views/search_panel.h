// The search for the best plans: what is best, progress, the points and the list, and what ruled
// the others out.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>

#include "models/search_session.h"
#include "views/pareto_plot.h"

namespace shardplan::gui {

class SearchPanel : public QWidget {
  Q_OBJECT

 public:
  explicit SearchPanel(Session& session, QWidget* parent = nullptr);

  SearchSession& search() { return search_; }

 private:
  QLayout* make_bar();
  QWidget* make_lists();
  void show_whether_it_can();
  void show_result();
  void select(int row);

  Session& session_;
  SearchSession search_;
  QComboBox* objective_;
  QPushButton *start_, *cancel_, *use_;
  QProgressBar* progress_;
  QLabel* summary_;
  ParetoPlot* plot_;
  QTableView* found_;
};

}  // namespace shardplan::gui
