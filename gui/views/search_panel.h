// The search for the best plans: what is best, progress, the points and the list, and what ruled
// the others out.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>

#include "models/search_session.h"
#include "views/plot_view.h"

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
  QLayout* make_axes();
  QComboBox* make_axis(const QString& name, Measure begun_with);
  void show_result();
  /// The plans by the measures that are chosen.
  void show_plot();
  void select(int row);
  int selected_row() const;

  Session& session_;
  SearchSession search_;
  QComboBox *objective_, *across_, *up_;
  QPushButton *start_, *cancel_, *use_;
  QProgressBar* progress_;
  QLabel* summary_;
  PlotView* plot_;
  std::vector<int> rows_of_points_;
  QTableView* found_;
};

}  // namespace shardplan::gui
