#include "views/search_panel.h"

#include <QHBoxLayout>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "views/widgets.h"

namespace shardplan::gui {

SearchPanel::SearchPanel(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), search_(session) {
  summary_ = make_text(this);
  plot_ = new PlotView(this);
  plot_->setObjectName(QStringLiteral("front"));
  plot_->setAccessibleName(tr("The plans that were found, as a plot"));
  use_ = new QPushButton(tr("&Use the selected plan"), this);
  use_->setEnabled(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(make_bar());
  layout->addWidget(summary_);
  layout->addLayout(make_axes());
  layout->addWidget(plot_, 3);
  layout->addWidget(make_lists(), 2);
  layout->addWidget(use_, 0, Qt::AlignLeft);
  connect(use_, &QPushButton::clicked, this, [this] { search_.use(selected_row()); });
  connect(plot_, &PlotView::selection_changed, this, [this](int point) {
    if (point >= 0) select(rows_of_points_.at(static_cast<std::size_t>(point)));
  });
  connect(&session, &Session::answered, this, &SearchPanel::show_whether_it_can);
  show_whether_it_can();
  connect(&search_.work(), &Background::started, this, [this] {
    progress_->setValue(0);
    progress_->show();
    cancel_->setEnabled(true);
  });
  connect(&search_.work(), &Background::progressed, this,
          [this](double share) { progress_->setValue(static_cast<int>(1000 * share)); });
  connect(&search_.work(), &Background::finished, this, &SearchPanel::show_result);
  connect(&search_, &SearchSession::outcome_changed, this, &SearchPanel::show_result);
  connect(&search_.work(), &Background::failed, summary_, &QLabel::setText);
}

QLayout* SearchPanel::make_bar() {
  objective_ = new QComboBox(this);
  objective_->addItem(tr("most tokens per second"), static_cast<int>(Objective::throughput));
  objective_->addItem(tr("least money"), static_cast<int>(Objective::cost));
  objective_->addItem(tr("fewest GPUs"), static_cast<int>(Objective::gpus));
  objective_->addItem(tr("least memory"), static_cast<int>(Objective::memory));
  objective_->setAccessibleName(tr("What is best"));
  start_ = new QPushButton(tr("&Search for the best plans"), this);
  start_->setObjectName(QStringLiteral("search"));
  cancel_ = new QPushButton(tr("Ca&ncel"), this);
  cancel_->setEnabled(false);
  connect(start_, &QPushButton::clicked, this,
          [this] { search_.start(static_cast<Objective>(objective_->currentData().toInt())); });
  connect(cancel_, &QPushButton::clicked, this, [this] { search_.cancel(); });
  progress_ = new QProgressBar(this);
  progress_->setRange(0, 1000);
  progress_->setAccessibleName(tr("Candidates checked"));
  progress_->hide();
  auto* bar = new QHBoxLayout;
  bar->addWidget(objective_);
  bar->addWidget(start_);
  bar->addWidget(cancel_);
  bar->addWidget(progress_, 1);
  bar->addStretch();
  return bar;
}

QComboBox* SearchPanel::make_axis(const QString& name, Measure begun_with) {
  auto* box = new QComboBox(this);
  for (const Measure m : kMeasures) box->addItem(FoundPlans::name_of(m), static_cast<int>(m));
  box->setCurrentIndex(box->findData(static_cast<int>(begun_with)));
  box->setAccessibleName(name);
  connect(box, &QComboBox::activated, this, &SearchPanel::show_plot);
  return box;
}

QLayout* SearchPanel::make_axes() {
  up_ = make_axis(tr("What the plot shows upwards"), Measure::tokens);
  across_ = make_axis(tr("What the plot shows across"), Measure::memory);
  up_->setObjectName(QStringLiteral("up"));
  across_->setObjectName(QStringLiteral("across"));
  auto* save = new QPushButton(tr("Save the p&lot…"), this);
  connect(save, &QPushButton::clicked, plot_, &PlotView::ask_and_save);
  auto* bar = new QHBoxLayout;
  bar->addWidget(up_);
  bar->addWidget(new QLabel(tr("by"), this));
  bar->addWidget(across_);
  bar->addStretch();
  bar->addWidget(save);
  return bar;
}

QWidget* SearchPanel::make_lists() {
  auto* lists = new QTabWidget(this);
  found_ = make_table(search_.found_model(), tr("Best trade-offs"), this);
  connect(found_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now) { select(now.row()); });
  lists->addTab(found_, tr("Plans"));
  lists->addTab(make_table(search_.ruled_out_model(), tr("Ruled out"), this), tr("Ruled out"));
  return lists;
}

void SearchPanel::show_whether_it_can() {
  const bool can = search_.can_search();
  start_->setEnabled(can);
  summary_->setText(
      session_.answer().job && !can
          ? tr("A search varies how one model is trained; this job does something else.")
          : search_.summary());
}

void SearchPanel::show_result() {
  progress_->hide();
  cancel_->setEnabled(false);
  summary_->setText(search_.summary());
  use_->setEnabled(false);
  show_plot();
  if (search_.found().rowCount() > 0) select(0);
}

void SearchPanel::show_plot() {
  const Answer& a = session_.answer();
  const auto measure = [](const QComboBox* box) {
    return static_cast<Measure>(box->currentData().toInt());
  };
  const int row = selected_row();
  plot_->set_data(FoundPlans::plot(search_.found().rows(), measure(across_), measure(up_),
                                   a.estimate ? static_cast<double>(a.estimate->usable_bytes) : 0,
                                   rows_of_points_));
  select(row);
}

int SearchPanel::selected_row() const {
  return found_->currentIndex().row();
}

void SearchPanel::select(int row) {
  use_->setEnabled(row >= 0);
  if (row < 0) return;
  if (found_->currentIndex().row() != row) found_->selectRow(row);
  const auto point = std::find(rows_of_points_.begin(), rows_of_points_.end(), row);
  plot_->select(point == rows_of_points_.end() ? -1
                                               : static_cast<int>(point - rows_of_points_.begin()));
}

}  // namespace shardplan::gui
