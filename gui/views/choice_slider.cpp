#include "views/choice_slider.h"

#include <QGridLayout>
#include <QLabel>
#include <algorithm>

#include "base/format.h"
#include "models/text.h"
#include "views/widgets.h"

namespace shardplan::gui {

ChoiceSlider::ChoiceSlider(Session& session, TrainingField field, std::vector<qint64> values,
                           QWidget* parent)
    : QWidget(parent), session_(session), field_(std::move(field)), values_(std::move(values)) {
  auto* label = new QLabel(field_.label, this);
  value_ = new TextLabel(TextLabel::Lines::one, this);
  value_->set_alignment(Qt::AlignRight);
  slider_ = new QSlider(Qt::Horizontal, this);
  slider_->setPageStep(1);
  slider_->setTickPosition(QSlider::TicksBelow);
  slider_->setTickInterval(1);
  slider_->setAccessibleName(field_.label);
  slider_->setObjectName(QString::fromStdString(field_.pointer));
  label->setBuddy(slider_);
  for (QWidget* w : {static_cast<QWidget*>(label), static_cast<QWidget*>(slider_)})
    explain(w, field_.label, field_.help);
  auto* layout = new QGridLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setVerticalSpacing(0);
  layout->addWidget(label, 0, 0);
  layout->addWidget(value_, 0, 1);
  layout->addWidget(slider_, 1, 0, 1, 2);
  connect(slider_, &QSlider::valueChanged, this, &ChoiceSlider::moved);
  connect(slider_, &QSlider::sliderPressed, this, [this] { session_.document().begin_gesture(); });
  connect(slider_, &QSlider::sliderReleased, this, [this] { session_.document().end_gesture(); });
}

std::vector<Choice> ChoiceSlider::stops_with(const Job& job, const QVariant& now) const {
  if (!field_.choices.empty()) return field_.offered(job);
  std::vector<qint64> values = values_;
  if (field_.can_be_open(job)) values.insert(values.begin(), 0);
  if (std::find(values.begin(), values.end(), now.toLongLong()) == values.end()) {
    values.push_back(now.toLongLong());  // the job's own value is a stop too
    std::sort(values.begin(), values.end());
  }
  std::vector<Choice> stops;
  for (const qint64 v : values)
    if (!field_.allows || v == now.toLongLong() || field_.allows(job, v))
      stops.push_back({v == 0 ? field_.open_words : text(format_count(v)), v});
  return stops;
}

void ChoiceSlider::refresh() {
  const std::optional<Job>& job = session_.answer().job;
  setVisible(job && field_.applies_to(*job));
  if (!job || !field_.applies_to(*job)) return;
  const QVariant now = field_.read(*job);
  is_refreshing_ = true;
  stops_ = stops_with(*job, now);
  slider_->setRange(0, static_cast<int>(stops_.size()) - 1);
  slider_->setEnabled(stops_.size() > 1);
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    if (stops_[i].value != now) continue;
    slider_->setValue(static_cast<int>(i));
    value_->set_text(stops_[i].label);
    slider_->setAccessibleDescription(stops_[i].label);
  }
  is_refreshing_ = false;
}

void ChoiceSlider::moved(int at) {
  if (is_refreshing_ || at < 0 || static_cast<std::size_t>(at) >= stops_.size()) return;
  const Choice choice = stops_[static_cast<std::size_t>(at)];
  value_->set_text(choice.label);
  field_.write(session_, choice.value);
}

}  // namespace shardplan::gui
