#include "views/rank_bars.h"

#include <QGridLayout>

#include "models/provenance.h"
#include "models/text.h"
#include "views/colours.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

constexpr std::size_t kMostKinds = 4;  // ranks that differ: the first, the last and between
constexpr int kHeight = 20;

}  // namespace

RankBars::RankBars(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* layout = new QGridLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setVerticalSpacing(0);
  for (std::size_t i = 0; i < kMostKinds; ++i) {
    Row row{new TextLabel(TextLabel::Lines::one, this), new ShareBar(category_brush, this)};
    row.bar->setFixedHeight(kHeight);
    row.bar->set_hints([this, i](std::size_t share) {
      const Answer& now = session_.answer();
      return EstimateModels::breakdown(now.ranks.at(i), now.job->plan,
                                       session_.workbench().calibration)
          .at(share)
          .hint;
    });
    layout->addWidget(row.name, static_cast<int>(i), 0);
    layout->addWidget(row.bar, static_cast<int>(i), 1);
    rows_.push_back(row);
  }
  layout->setColumnStretch(1, 1);
}

void RankBars::refresh() {
  const Answer& answer = session_.answer();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool used = i < answer.ranks.size();
    rows_[i].name->setVisible(used);
    rows_[i].bar->setVisible(used);
    if (!used) continue;
    const Estimate& e = answer.ranks[i];
    rows_[i].name->set_text(tr("GPU %1: %2").arg(e.rank).arg(bytes_text(e.device.point)));
    rows_[i].bar->setAccessibleName(rows_[i].name->text());
    set_hint(rows_[i].name, Provenance::device(e, answer.job->plan));
    rows_[i].bar->set_shares(EstimateModels::breakdown(e, answer.job->plan),
                             static_cast<double>(answer.estimate->usable_bytes),
                             static_cast<double>(e.device.upper));
    rows_[i].bar->set_longest(static_cast<double>(answer.estimate->device.upper));
  }
  setVisible(!answer.ranks.empty());  // last: the window is laid out anew once, not for each row
}

}  // namespace shardplan::gui
