#include "views/fix_list.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include "views/colours.h"
#include "views/widgets.h"

namespace shardplan::gui {

FixList::FixList(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  remark_ = make_text(this);
  layout_ = new QVBoxLayout(this);
  layout_->setContentsMargins(4, 4, 4, 4);
  layout_->addWidget(remark_);
  layout_->addStretch();
  connect(&session, &Session::fixes_changed, this, &FixList::refresh);
}

void FixList::add_row() {
  auto* whole = new QWidget(this);
  const Row row{whole, make_text(whole), new QPushButton(tr("Apply"), whole)};
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

void FixList::refresh() {
  const Answer& a = session_.answer();
  const std::size_t count = a.estimate ? session_.fixes().size() : 0;
  while (rows_.size() < count) add_row();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (i < count) show_row(rows_[i], Fixes::words_of(session_.fixes()[i], a));
    rows_[i].whole->setVisible(i < count);
  }
  remark_->setVisible(count == 0);
  if (count == 0 && a.estimate) remark_->setText(Fixes::remark(a, session_.is_finding_fixes()));
}

void FixList::show_row(const Row& row, const FixWords& fix) {
  row.label->setText(QStringLiteral("<b>%1</b><br><span style=\"color:%2\">%3 %4</span>: %5")
                         .arg(fix.what.toHtmlEscaped(), verdict_colour(fix.fit, palette()).name(),
                              verdict_sign(fix.fit), fix.verdict.toHtmlEscaped(),
                              fix.effect.toHtmlEscaped()));
  set_hint(row.label, fix.hint);
  row.apply->setAccessibleName(tr("Apply: %1").arg(fix.what));
  row.apply->setAccessibleDescription(fix.verdict + QStringLiteral(": ") + fix.effect);
}

}  // namespace shardplan::gui
