#include "wizard/verdict_page.h"

#include <QGridLayout>
#include <QGroupBox>
#include <QHBoxLayout>
#include <QTabWidget>
#include <QVBoxLayout>

#include "models/job_words.h"
#include "models/messages.h"
#include "models/provenance.h"
#include "models/text.h"
#include "models/verdict_words.h"
#include "render/describe.h"
#include "views/colours.h"
#include "views/legend_delegate.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

enum class Tab : std::uint8_t { fixes, parts, phases, traffic, foundation };  // in their order

QFont bold(QFont font) {
  font.setBold(true);
  return font;
}

}  // namespace

VerdictPage::VerdictPage(Session& session, QWidget* parent) : Page(session, tr("Verdict"), parent) {
  error_ = make_error(this);
  body_ = new QWidget(this);
  auto* left = new QVBoxLayout;
  left->addLayout(make_heading());
  left->addWidget(make_memory(), 1);
  left->addWidget(make_time());
  left->addStretch();
  auto* right = new QVBoxLayout;
  right->addWidget(make_what_if());
  right->addWidget(make_tabs(), 1);
  auto* halves = new QHBoxLayout(body_);
  halves->setContentsMargins(0, 0, 0, 0);
  halves->addLayout(left, 3);
  halves->addLayout(right, 2);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(error_);
  layout->addWidget(body_, 1);
}

QLayout* VerdictPage::make_heading() {
  verdict_ = new TextLabel(TextLabel::Lines::wrapped, this);
  verdict_->setObjectName(QStringLiteral("verdict"));
  verdict_->setFont(bold(sized(font(), TypeSize::title)));
  next_step_ = new NextStep(session(), this);
  subject_ = new TextLabel(TextLabel::Lines::wrapped, this);
  subject_->setFont(bold(font()));
  method_ = new TextLabel(TextLabel::Lines::wrapped, this);
  method_->setForegroundRole(QPalette::PlaceholderText);
  resources_ = new ResourcePanel(this);
  auto* words = new QVBoxLayout;
  words->setSpacing(0);
  words->addWidget(subject_);
  words->addWidget(method_);
  auto* layout = new QVBoxLayout;
  layout->setSpacing(half_space());
  layout->addWidget(verdict_);
  layout->addWidget(next_step_);
  layout->addLayout(words);
  layout->addWidget(resources_);
  return layout;
}

QWidget* VerdictPage::make_memory() {
  memory_ = new ShareBar(category_brush, this);
  memory_->setAccessibleName(tr("Memory of the fullest GPU"));
  memory_->setObjectName(QStringLiteral("memory"));
  memory_->set_hints([this](std::size_t share) {
    const Answer& a = answer();
    return EstimateModels::breakdown(*a.estimate, a.job->plan, calibration()).at(share).hint;
  });
  ranks_ = new RankBars(session(), this);
  largest_ = new TextLabel(TextLabel::Lines::wrapped, this);
  largest_->setObjectName(QStringLiteral("largest"));
  timeline_ = new TimelineView(this);
  timeline_->setAccessibleName(tr("Memory through the step"));
  auto* layout = new QVBoxLayout;
  layout->setContentsMargins(space(), half_space(), space(), space());
  layout->setSpacing(half_space());
  memory_legend_ = new Legend(this);
  layout->addWidget(memory_);
  layout->addWidget(memory_legend_);
  layout->addWidget(ranks_);
  layout->addWidget(largest_);
  layout->addWidget(timeline_, 1);
  memory_box_ = make_box({}, layout, this);
  return memory_box_;
}

QWidget* VerdictPage::make_time() {
  time_ = new ShareBar(time_brush, this);
  time_->setObjectName(QStringLiteral("time"));
  rates_ = new TextLabel(TextLabel::Lines::wrapped, this);
  rates_->setObjectName(QStringLiteral("rates"));
  auto* layout = new QVBoxLayout;
  layout->setContentsMargins(space(), half_space(), space(), space());
  layout->setSpacing(half_space());
  layout->addWidget(rates_);
  time_legend_ = new Legend(this);
  time_legend_->setObjectName(QStringLiteral("time_legend"));
  layout->addWidget(time_);
  layout->addWidget(time_legend_);
  time_box_ = make_box({}, layout, this);
  time_box_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  return time_box_;
}

QWidget* VerdictPage::make_what_if() {
  auto* grid = new QGridLayout;
  grid->setContentsMargins(space(), half_space(), space(), half_space());
  grid->setHorizontalSpacing(2 * space());
  grid->setVerticalSpacing(half_space());
  // Sliders of different kinds of jobs share a place: those that do not apply are hidden.
  const auto add = [&](int at, TrainingField field, std::vector<qint64> values = {}) {
    auto* slider = new ChoiceSlider(session(), std::move(field), std::move(values), this);
    grid->addWidget(slider, at / 2, at % 2);
    sliders_.push_back(slider);
  };
  const std::vector<qint64> lengths{512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  add(0, TrainingFields::micro_batch(), {1, 2, 4, 8, 16, 32, 64});
  add(1, TrainingFields::sequence_length(), lengths);
  add(2, TrainingFields::gpus(), {1, 2, 4, 8, 16, 32, 64, 128});
  add(3, TrainingFields::stage());
  add(4, TrainingFields::offload());
  add(5, TrainingFields::checkpointing());
  add(0, TrainingFields::batch(), {1, 2, 4, 8, 16, 32, 64, 128, 256});
  add(1, TrainingFields::prompt_length(), lengths);
  add(3, TrainingFields::new_tokens(), {64, 128, 256, 512, 1024, 2048, 4096, 8192});
  add(4, TrainingFields::weights());
  add(5, TrainingFields::cache_type());
  QWidget* box = make_box(tr("What if"), grid, this);
  box->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  return box;
}

QTabWidget* VerdictPage::make_tabs() {
  tabs_ = new QTabWidget(this);
  tabs_->setObjectName(QStringLiteral("tables"));
  connect(tabs_, &QTabWidget::currentChanged, this, &VerdictPage::show_tab);
  fixes_ = new FixList(session(), this);
  fixes_->setObjectName(QStringLiteral("fixes"));
  tabs_->addTab(make_scroll(fixes_, this), tr("What would help"));
  breakdown_ = EstimateModels::breakdown_model(this);
  phases_ =
      EstimateModels::fact_model({tr("live tensors"), tr("peak"), tr("at the end")}, true, this);
  traffic_ =
      EstimateModels::fact_model({tr("sent"), tr("link"), tr("bytes"), tr("calls")}, true, this);
  foundation_ = EstimateModels::fact_model({tr("basis"), tr("what")}, false, this);
  const auto add = [&](QAbstractItemModel* model, const QString& name) {
    QTableView* table = make_table(model, name, this);
    tabs_->addTab(table, name);
    return table;
  };
  QTableView* parts = add(breakdown_, tr("Parts"));
  parts->setObjectName(QStringLiteral("parts"));
  parts->setItemDelegateForColumn(0, new LegendDelegate(parts));
  add(phases_, tr("Phases"))->setObjectName(QStringLiteral("phases"));
  add(traffic_, tr("Traffic"));
  add(foundation_, tr("Sources"));
  return tabs_;
}

void VerdictPage::refresh() {
  const Answer& a = answer();
  body_->setVisible(a.estimate.has_value());
  show_error(error_, a.error ? Messages::of(*a.error) : QString());
  for (ChoiceSlider* slider : sliders_) slider->refresh();
  if (a.estimate) show_answer();
}

void VerdictPage::show_answer() {
  const Answer& a = answer();
  const Estimate& e = *a.estimate;
  const Fit fit = overall(e.verdict);
  verdict_->set_text(QStringLiteral("%1 %2").arg(verdict_sign(fit), VerdictWords::sentence(e)));
  set_ink(verdict_, verdict_colour(fit, palette()));
  set_hint(verdict_, Provenance::device(e, a.job->plan));
  subject_->set_text(JobWords::subject(a));
  method_->set_text(JobWords::method(a));
  resources_->set_resources(EstimateModels::resources(a));
  memory_box_->setTitle(JobWords::memory_title(a));
  time_box_->setTitle(JobWords::time_title(a));
  time_->setAccessibleName(time_box_->title());
  memory_->set_shares(EstimateModels::breakdown(e, a.job->plan),
                      static_cast<double>(e.usable_bytes), static_cast<double>(e.device.upper),
                      tr("usable %1").arg(bytes_text(e.usable_bytes)));
  memory_legend_->set_entries(memory_->legend(ShareBar::LegendWords::names));
  ranks_->refresh();
  largest_->set_text(EstimateModels::largest_consumer(a));
  const std::int64_t room = e.usable_bytes - (e.device.point - e.allocated.point);
  // An engine takes all of it at its start: there is nothing to draw, and no place to keep.
  timeline_->setVisible(!e.serving);
  memory_box_->setSizePolicy(QSizePolicy::Preferred,
                             e.serving ? QSizePolicy::Maximum : QSizePolicy::Preferred);
  timeline_->set_timeline(a.timeline, static_cast<double>(std::max<std::int64_t>(room, 0)));
  rates_->set_text(JobWords::rates(a));
  set_hint(rates_, Provenance::rates(e, a.job->plan));
  time_->set_shares(EstimateModels::time(a));
  time_legend_->set_entries(time_->legend(ShareBar::LegendWords::names_and_amounts));
  fixes_->refresh();
  next_step_->refresh();
  show_tab();
}

/// The tables that nobody sees are filled when they come up.
void VerdictPage::show_tab() {
  const Answer& a = answer();
  if (!a.estimate) return;
  switch (static_cast<Tab>(tabs_->currentIndex())) {
    case Tab::fixes:
      break;
    case Tab::parts:
      breakdown_->set_rows(EstimateModels::breakdown(*a.estimate, a.job->plan, calibration()));
      break;
    case Tab::phases:
      phases_->set_rows(EstimateModels::phases(a));
      break;
    case Tab::traffic:
      traffic_->set_rows(EstimateModels::traffic(a));
      break;
    case Tab::foundation:
      foundation_->set_rows(EstimateModels::foundation(a, calibration()));
      break;
  }
}

}  // namespace shardplan::gui
