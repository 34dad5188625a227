#include "views/next_step.h"

#include <QHBoxLayout>

#include "models/fixes.h"
#include "models/verdict_words.h"
#include "views/widgets.h"

namespace shardplan::gui {

NextStep::NextStep(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  label_ = new TextLabel(TextLabel::Lines::wrapped, this);
  label_->setObjectName(QStringLiteral("next_step"));
  apply_ = new QPushButton(tr("Do this"), this);
  apply_->setObjectName(QStringLiteral("do_next_step"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(label_, 1);
  layout->addWidget(apply_, 0, Qt::AlignTop);
  connect(apply_, &QPushButton::clicked, this, [this] {
    if (!session_.fixes().empty()) session_.apply(Fix(session_.fixes().front()));
  });
  connect(&session, &Session::fixes_changed, this, &NextStep::refresh);
}

/// While it is looked for, what was there before stays, dimmed: the page below does not move.
void NextStep::refresh() {
  const Answer& a = session_.answer();
  const bool waits = session_.is_finding_fixes() || !a.estimate;
  const QPalette::ColorRole ink = waits ? QPalette::PlaceholderText : QPalette::WindowText;
  if (label_->foregroundRole() != ink) label_->setForegroundRole(ink);
  const bool is_there = !waits && !session_.fixes().empty();
  apply_->setEnabled(is_there);
  if (waits) return;
  QStringList lines;
  const QString room =
      session_.headroom() ? VerdictWords::headroom(*session_.headroom()) : QString();
  if (!room.isEmpty()) lines.push_back(room);
  if (is_there) {
    const FixWords best = Fixes::words_of(session_.fixes().front(), a);
    lines.push_back((a.estimate->verdict.fits ? tr("Faster: %1 (%2)") : tr("Try: %1 (%2)"))
                        .arg(best.what, best.effect));
    set_hint(label_, best.hint);
    apply_->setAccessibleName(tr("Do this: %1").arg(best.what));
  } else {
    lines.push_back(Fixes::remark(a, false));
    set_hint(label_, {});
    apply_->setAccessibleName({});
  }
  label_->set_text(lines.join(QLatin1Char('\n')));
}

}  // namespace shardplan::gui
