#include "views/fix_list.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include "views/colours.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {

FixList::FixList(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  remark_ = new TextLabel(TextLabel::Lines::wrapped, this);
  layout_ = new QVBoxLayout(this);
  layout_->setContentsMargins(half_space(), half_space(), half_space(), half_space());
  layout_->addWidget(remark_);
  layout_->addStretch();
  connect(&session, &Session::fixes_changed, this, &FixList::refresh);
}

void FixList::add_row() {
  auto* whole = new QWidget(this);
  const Row row{whole, new TextLabel(TextLabel::Lines::wrapped, whole),
                new QPushButton(tr("Apply"), whole)};
  connect(row.apply, &QPushButton::clicked, this, [this, at = rows_.size()] {
    if (at < session_.fixes().size()) session_.apply(Fix(session_.fixes()[at]));
  });
  auto* layout = new QHBoxLayout(whole);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(row.label, 1);
  layout->addWidget(row.apply, 0, Qt::AlignTop);
  layout_->insertWidget(static_cast<int>(rows_.size()), whole);
  rows_.push_back(row);
}

/// While fixes are looked for, those before stay where they are, dimmed: there is nothing to apply.
void FixList::refresh() {
  const Answer& a = session_.answer();
  const bool waits =
      session_.is_finding_fixes() && !rows_.empty() && !rows_.front().whole->isHidden();
  const QPalette::ColorRole ink = waits ? QPalette::PlaceholderText : QPalette::WindowText;
  for (const Row& row : rows_)
    if (row.label->foregroundRole() != ink) row.label->setForegroundRole(ink);
  if (waits) return;
  const std::size_t count = a.estimate ? session_.fixes().size() : 0;
  while (rows_.size() < count) add_row();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (i < count) show_row(rows_[i], Fixes::words_of(session_.fixes()[i], a));
    rows_[i].whole->setVisible(i < count);
  }
  remark_->setVisible(count == 0);
  if (count == 0 && a.estimate) remark_->set_text(Fixes::remark(a, session_.is_finding_fixes()));
}

void FixList::show_row(const Row& row, const FixWords& fix) {
  QTextCharFormat bold, ink;
  bold.setFontWeight(QFont::Bold);
  ink.setForeground(verdict_colour(fix.fit, palette()));
  const QString verdict = QStringLiteral("%1 %2").arg(verdict_sign(fix.fit), fix.verdict);
  const int title = static_cast<int>(fix.what.size());
  row.label->set_text(QStringLiteral("%1\n%2: %3").arg(fix.what, verdict, fix.effect),
                      {{0, title, bold}, {title + 1, static_cast<int>(verdict.size()), ink}});
  set_hint(row.label, fix.hint);
  row.apply->setAccessibleName(tr("Apply: %1").arg(fix.what));
  row.apply->setAccessibleDescription(fix.verdict + QStringLiteral(": ") + fix.effect);
}

}  // namespace shardplan::gui
