#include "wizard/compare_page.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QVBoxLayout>

#include "frameworks/registry.h"
#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "render/describe.h"
#include "report/words.h"
#include "views/colours.h"
#include "views/differs_delegate.h"
#include "views/widgets.h"

namespace shardplan::gui {

ComparePage::ComparePage(Session& session, QWidget* parent)
    : Page(session, tr("Compare"), parent), model_(new PlanTable(this)) {
  list_ = new QListWidget(this);
  list_->setAccessibleName(tr("Plans to compare, four at most"));
  connect(list_, &QListWidget::itemChanged, this, &ComparePage::show_chosen);
  auto* keep = new QPushButton(tr("&Keep this plan for comparison"), this);
  connect(keep, &QPushButton::clicked, this, &ComparePage::keep_current);
  auto* left = new QVBoxLayout;
  left->addWidget(list_, 1);
  left->addWidget(keep);

  auto* bars = new QGridLayout;
  bars->setVerticalSpacing(2);
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    bars_[i] = {new QLabel(this), new ShareBar(category_brush, this)};
    bars->addWidget(bars_[i].name, static_cast<int>(i), 0);
    bars->addWidget(bars_[i].bar, static_cast<int>(i), 1);
  }
  bars->setColumnStretch(1, 1);
  QTableView* table = make_table(model_, tr("Plans side by side"), this);
  table->setItemDelegate(new DiffersDelegate(table));
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  // Rows come after the columns were stretched: a bar that came with them would cover the last.
  table->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* right = new QVBoxLayout;
  right->addLayout(bars);
  right->addWidget(table, 1);
  auto* layout = new QHBoxLayout(this);
  layout->addWidget(make_box(tr("Plans to compare, four at most"), left, this), 1);
  layout->addLayout(right, 3);
}

std::vector<Alternative> ComparePage::alternatives(const Answer& a) const {
  return compare_plans(*a.job, calibration());
}

void ComparePage::refresh() {
  const Answer& a = answer();
  if (!a.job) {
    model_->set_plans({}, calibration());
    return;
  }
  offered_ = alternatives(a);
  for (const Alternative& plan : kept_) offered_.push_back(plan);
  const bool begins = list_->count() == 0;
  const QSignalBlocker quiet(list_);
  std::vector<bool> was_checked;
  for (int i = 0; i < list_->count(); ++i)
    was_checked.push_back(list_->item(i)->checkState() == Qt::Checked);
  list_->clear();
  const bool by_stages = zero_options(a.job->plan) != nullptr && !a.job->rlhf;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    auto* item = new QListWidgetItem(words(offered_[i].name), list_);
    const bool is_plain_stage = zero_options(offered_[i].plan) != nullptr &&
                                offered_[i].name.find('+') == std::string::npos;
    const bool begun_with = offered_[i].is_current || is_plain_stage || !by_stages;
    const bool checked =
        begins ? begun_with && shown++ < kMostCompared : i < was_checked.size() && was_checked[i];
    item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsUserCheckable | Qt::ItemIsSelectable);
    item->setCheckState(checked ? Qt::Checked : Qt::Unchecked);
  }
  show_chosen();
}

void ComparePage::keep_current() {
  const Answer& a = answer();
  if (!a.job) return;
  const std::string name = subject(*a.job);
  kept_.push_back({name.substr(0, name.find('\n')), a.job->plan, *a.estimate, false});
  refresh();
}

void ComparePage::show_chosen() {
  std::vector<Alternative> chosen;
  for (int i = 0; i < list_->count(); ++i)
    if (list_->item(i)->checkState() == Qt::Checked)
      chosen.push_back(offered_[static_cast<std::size_t>(i)]);
  model_->set_plans(std::move(chosen), calibration());
  double longest = 0;
  for (const Alternative& plan : model_->plans())
    longest = std::max(longest, static_cast<double>(plan.estimate.device.upper));
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const bool used = i < model_->plans().size();
    bars_[i].name->setVisible(used);
    bars_[i].bar->setVisible(used);
    if (!used) continue;
    const Alternative& plan = model_->plans()[i];
    const Fit fit = overall(plan.estimate.verdict);
    bars_[i].name->setText(
        QStringLiteral("%1\n%2 %3")
            .arg(words(plan.name), verdict_sign(fit), words(report::words_of(fit))));
    bars_[i].bar->setAccessibleName(words(plan.name));
    set_hint(bars_[i].name, Provenance::device(plan.estimate, plan.plan));
    bars_[i].bar->set_shares(EstimateModels::breakdown(plan.estimate, plan.plan, calibration()),
                             static_cast<double>(plan.estimate.usable_bytes),
                             static_cast<double>(plan.estimate.device.upper));
    bars_[i].bar->set_longest(longest);
  }
}

}  // namespace shardplan::gui
