#include "views/search_panel.h"

#include <QHBoxLayout>
#include <QTabWidget>
#include <QVBoxLayout>

#include "base/format.h"
#include "models/text.h"
#include "views/widgets.h"

namespace shardplan::gui {

SearchPanel::SearchPanel(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), search_(session) {
  summary_ = make_text(this);
  plot_ = new ParetoPlot(this);
  plot_->setAccessibleName(tr("Plans by memory and time"));
  plot_->set_axes(
      {tr("memory of each GPU"),
       [](double bytes) { return text(format_bytes(static_cast<std::int64_t>(bytes))); }},
      {tr("seconds per million tokens"),
       [](double seconds) { return QString::number(1e6 * seconds, 'g', 3); }});
  use_ = new QPushButton(tr("&Use the selected plan"), this);
  use_->setEnabled(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(make_bar());
  layout->addWidget(summary_);
  layout->addWidget(plot_, 3);
  layout->addWidget(make_lists(), 2);
  layout->addWidget(use_, 0, Qt::AlignLeft);
  connect(use_, &QPushButton::clicked, this, [this] { search_.use(plot_->selected()); });
  connect(plot_, &ParetoPlot::selection_changed, this, &SearchPanel::select);
  connect(&session, &Session::answered, this, &SearchPanel::show_whether_it_can);
  show_whether_it_can();
  connect(&search_, &SearchSession::started, this, [this] {
    progress_->setValue(0);
    progress_->show();
    cancel_->setEnabled(true);
  });
  connect(&search_, &SearchSession::progressed, this,
          [this](double share) { progress_->setValue(static_cast<int>(1000 * share)); });
  connect(&search_, &SearchSession::finished, this, &SearchPanel::show_result);
  connect(&search_, &SearchSession::failed, summary_, &QLabel::setText);
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
  std::vector<PlotPoint> points;
  for (const FoundRow& row : search_.found().rows())
    points.push_back({row.bytes, row.seconds_a_token, row.memory + QStringLiteral(", ") + row.step,
                      QStringLiteral("<b>%1, %2</b><br>%3%4")
                          .arg(row.memory, row.step, row.plan.toHtmlEscaped(), row.hint)});
  const Answer& a = session_.answer();
  plot_->set_points(std::move(points),
                    a.estimate ? static_cast<double>(a.estimate->usable_bytes) : 0);
  use_->setEnabled(false);
  if (search_.found().rowCount() > 0) select(0);
}

void SearchPanel::select(int row) {
  use_->setEnabled(row >= 0);
  if (row < 0) return;
  plot_->select(row);
  if (found_->currentIndex().row() != row) found_->selectRow(row);
}

}  // namespace shardplan::gui
