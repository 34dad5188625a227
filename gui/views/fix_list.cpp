#include "views/fix_list.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "base/format.h"
#include "models/core_words.h"
#include "models/text.h"
#include "render/describe.h"
#include "report/words.h"
#include "views/colours.h"
#include "views/widgets.h"

namespace shardplan::gui {

FixList::FixList(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  rows_ = new QVBoxLayout(this);
  rows_->setContentsMargins(4, 4, 4, 4);
  connect(&session, &Session::fixes_changed, this, &FixList::refresh);
}

void FixList::refresh() {
  while (QLayoutItem* item = rows_->takeAt(0)) {
    if (item->widget() != nullptr) item->widget()->deleteLater();
    delete item;
  }
  if (session_.answer().estimate) {
    for (const Fix& fix : session_.fixes()) rows_->addWidget(make_row(fix));
    if (session_.fixes().empty()) rows_->addWidget(make_remark());
  }
  rows_->addStretch();
}

QWidget* FixList::make_remark() {
  QLabel* remark = make_text(this);
  remark->setText(
      session_.is_finding_fixes() ? tr("finding what would help…")
      : session_.answer().estimate->verdict.fits
          ? tr("Nothing in this plan needs to be made lighter.")
          : tr("Nothing in this plan can be made lighter: it takes more GPUs or a smaller model."));
  return remark;
}

QWidget* FixList::make_row(const Fix& fix) {
  auto* row = new QWidget(this);
  const Estimate& now = *session_.answer().estimate;
  const Fit fit = overall(fix.after.verdict);
  QStringList what, how;
  for (const Change& change : fix.changes) {
    what.push_back(words(change.what));
    how.push_back(text(change.how));
  }
  QString effect =
      tr("%1 → %2 of each GPU")
          .arg(text(format_bytes(now.device.point)), text(format_bytes(fix.after.device.point)));
  if (fix.after.host_per_node.total() > now.host_per_node.total())
    effect += tr(", %1 of each host").arg(text(format_bytes(fix.after.host_per_node.total())));
  if (fix.slowdown > 0.95 && fix.slowdown < 1.05) {
    effect += tr("; about as fast");
  } else if (fix.slowdown > 0) {
    effect += tr("; %1× the time for each token").arg(QString::number(fix.slowdown, 'g', 2));
  }
  QLabel* label = make_text(row);
  label->setText(QStringLiteral("<b>%1</b><br><span style=\"color:%2\">%3 %4</span>: %5")
                     .arg(what.join(QStringLiteral(" + ")).toHtmlEscaped(),
                          verdict_colour(fit, palette()).name(), verdict_sign(fit),
                          words(report::words_of(fit)).toHtmlEscaped(), effect.toHtmlEscaped()));
  set_hint(label, how.join(QLatin1Char('\n')).toHtmlEscaped());
  auto* apply = new QPushButton(tr("Apply"), row);
  apply->setAccessibleName(tr("Apply: %1").arg(what.join(QStringLiteral(" + "))));
  apply->setAccessibleDescription(spoken(label->text()));
  connect(apply, &QPushButton::clicked, this, [this, fix] { session_.apply(fix); });
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(label, 1);
  layout->addWidget(apply, 0, Qt::AlignTop);
  return row;
}

}  // namespace shardplan::gui
