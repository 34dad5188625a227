#include "wizard/compare_page.h"

#include <fmt/format.h>

#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "frameworks/registry.h"
#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "models/verdict_words.h"
#include "questions/accuracy.h"
#include "render/describe.h"
#include "views/colours.h"
#include "views/differs_delegate.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

std::string model_of(const Job& job) {
  return fmt::format("{} {}", job.model.facts.name, job.model.parameter_count());
}

}  // namespace

ComparePage::ComparePage(Session& session, QWidget* parent)
    : Page(session, tr("Compare"), parent), model_(new PlanTable(this)) {
  list_ = new QListWidget(this);
  list_->setObjectName(QStringLiteral("plans"));
  list_->setAccessibleName(tr("Plans to compare, four at most"));
  connect(list_, &QListWidget::itemChanged, this, &ComparePage::show_chosen);
  auto* keep = new QPushButton(tr("&Keep this plan for comparison"), this);
  connect(keep, &QPushButton::clicked, this, &ComparePage::keep_current);
  auto* left = new QVBoxLayout;
  left->addWidget(list_, 1);
  left->addWidget(keep);

  auto* bars = new QGridLayout;
  bars->setVerticalSpacing(half_space());
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    bars_[i] = {new QLabel(this), new ShareBar(category_brush, this)};
    bars_[i].name->setWordWrap(true);
    bars_[i].name->setMinimumWidth(150);
    bars->addWidget(bars_[i].name, static_cast<int>(i), 0);
    bars->addWidget(bars_[i].bar, static_cast<int>(i), 1);
  }
  legend_ = new Legend(this);
  bars->setColumnStretch(1, 1);
  QTableView* table = make_table(model_, tr("Plans side by side"), this);
  table->setObjectName(QStringLiteral("comparison"));
  table->setItemDelegate(new DiffersDelegate(table));
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  // Rows come after the columns were stretched: a bar that came with them would cover the last.
  table->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* right = new QVBoxLayout;
  right->addWidget(legend_);
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
  const QSignalBlocker quiet(list_);
  std::optional<std::set<std::string>> was_checked;
  if (list_->count() > 0) was_checked.emplace();
  for (int i = 0; i < list_->count(); ++i)
    if (list_->item(i)->checkState() == Qt::Checked)
      was_checked->insert(offered_[static_cast<std::size_t>(i)].name);
  list_->clear();
  offered_.clear();
  if (a.job) {
    offered_ = alternatives(a);
    for (const KeptPlan& kept : kept_)
      if (kept.model == model_of(*a.job)) offered_.push_back(kept.plan);
  }
  list_choices(was_checked);
}

/// Those that were checked and are there still; where all of them are gone, the plans to begin
/// with.
void ComparePage::list_choices(const std::optional<std::set<std::string>>& was_checked) {
  const auto is_checked = [&](const Alternative& plan) {
    return was_checked && was_checked->contains(plan.name);
  };
  const bool by_stages = answer().job && zero_options(answer().job->plan) && !answer().job->rlhf;
  const bool none_is_wanted = was_checked && was_checked->empty();
  const bool begins = !none_is_wanted && std::none_of(offered_.begin(), offered_.end(), is_checked);
  std::size_t shown = 0;
  for (std::size_t i = 0; i < offered_.size(); ++i) {
    auto* item = new QListWidgetItem(words(offered_[i].name), list_);
    const bool is_plain_stage = zero_options(offered_[i].plan) != nullptr &&
                                offered_[i].name.find('+') == std::string::npos;
    const bool begun_with = offered_[i].is_current || is_plain_stage || !by_stages;
    const bool checked = begins ? begun_with && shown++ < kMostCompared : is_checked(offered_[i]);
    item->setCheckState(checked ? Qt::Checked : Qt::Unchecked);
  }
  show_chosen();
}

/// Plans that differ have names that do: where they run, who runs them, and on how much; a number
/// where they differ in something else.
std::string ComparePage::free_name(const Plan& plan) const {
  const Workload& w = plan.workload;
  const std::string wanted =
      fmt::format("{}, {}, {} × {} × {}, {}", describe_cluster(plan.cluster), framework_group(plan),
                  w.micro_batch, w.gradient_accumulation, w.sequence_length, plan.precision.name);
  std::string name = wanted;
  const auto is_taken = [&](const KeptPlan& kept) { return kept.plan.name == name; };
  for (int n = 2; std::any_of(kept_.begin(), kept_.end(), is_taken); ++n)
    name = fmt::format("{} ({})", wanted, n);
  return name;
}

void ComparePage::keep_current() {
  const Answer& a = answer();
  if (!a.job) return;
  kept_.push_back({model_of(*a.job), {free_name(a.job->plan), a.job->plan, *a.estimate, false}});
  refresh();
}

/// Where as many are checked as can be shown, no other can be.
void ComparePage::limit_choices(std::size_t chosen) {
  const QSignalBlocker quiet(list_);
  const bool is_full = chosen >= kMostCompared;
  for (int i = 0; i < list_->count(); ++i) {
    QListWidgetItem* item = list_->item(i);
    const bool can_change = !is_full || item->checkState() == Qt::Checked;
    item->setFlags(can_change ? Qt::ItemIsEnabled | Qt::ItemIsUserCheckable | Qt::ItemIsSelectable
                              : Qt::ItemFlags(Qt::ItemIsSelectable));
    item->setToolTip(can_change ? QString() : tr("Four plans are shown. Untick one first."));
  }
}

void ComparePage::show_chosen() {
  std::vector<Alternative> chosen;
  for (int i = 0; i < list_->count(); ++i)
    if (list_->item(i)->checkState() == Qt::Checked)
      chosen.push_back(offered_[static_cast<std::size_t>(i)]);
  limit_choices(chosen.size());
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
            .arg(words(plan.name), verdict_sign(fit), VerdictWords::brief(plan.estimate.verdict)));
    bars_[i].bar->setAccessibleName(words(plan.name));
    set_hint(bars_[i].name, Provenance::device(plan.estimate, plan.plan));
    bars_[i].bar->set_shares(EstimateModels::breakdown(plan.estimate, plan.plan, calibration()),
                             static_cast<double>(plan.estimate.usable_bytes),
                             static_cast<double>(plan.estimate.device.upper));
    bars_[i].bar->set_longest(longest);
  }
  show_legend();
}

/// Of all bars: they have one set of colours and one line of capacity.
void ComparePage::show_legend() {
  std::map<int, QString> names;
  for (const Alternative& plan : model_->plans())
    for (const Share& share : EstimateModels::breakdown(plan.estimate, plan.plan, calibration()))
      names.emplace(share.colour, share.name);
  std::vector<LegendEntry> entries;
  for (const auto& [category, name] : names) entries.push_back({name, category_brush(category)});
  if (!entries.empty()) {
    entries.push_back({tr("up to the upper bound"), upper_bound_brush(palette())});
    entries.push_back({tr("usable memory"), Qt::NoBrush});
  }
  legend_->set_entries(std::move(entries));
}

}  // namespace shardplan::gui
