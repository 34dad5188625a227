#include "views/lint_panel.h"

#include <QHBoxLayout>
#include <QScrollArea>
#include <QVBoxLayout>

#include "views/widgets.h"

namespace shardplan::gui {

LintPanel::LintPanel(Session& session, QWidget* parent) : QWidget(parent), lint_(session) {
  summary_ = make_text(this);
  summary_->setObjectName(QStringLiteral("lint_summary"));
  table_ = make_table(lint_.model(), tr("Findings"), this);
  table_->setObjectName(QStringLiteral("findings"));
  detail_ = make_text(this);
  detail_->setAlignment(Qt::AlignTop);
  auto* scroll = new QScrollArea(this);
  scroll->setWidget(detail_);
  scroll->setWidgetResizable(true);
  scroll->setAccessibleName(tr("About the chosen finding"));
  fix_ = new QPushButton(tr("Fi&x this"), this);
  fix_->setObjectName(QStringLiteral("fix"));
  fix_all_ = new QPushButton(this);
  fix_all_->setObjectName(QStringLiteral("fix_all"));
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(fix_);
  buttons->addWidget(fix_all_);
  buttons->addStretch();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(summary_);
  layout->addWidget(table_, 3);
  layout->addWidget(scroll, 2);
  layout->addLayout(buttons);
  connect(&lint_, &LintSession::changed, this, &LintPanel::show_findings);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &LintPanel::show_row);
  connect(fix_, &QPushButton::clicked, this, [this] { lint_.apply(chosen()); });
  connect(fix_all_, &QPushButton::clicked, this, [this] { lint_.apply_all(); });
  show_findings();
}

void LintPanel::show_findings() {
  summary_->setText(lint_.is_running() ? tr("being checked…") : lint_.summary());
  summary_->setVisible(!summary_->text().isEmpty());
  setVisible(lint_.findings().rowCount() > 0 || summary_->isVisibleTo(this));
  const int fixable = lint_.fixable();
  fix_all_->setText(tr("Fix &all (%1)").arg(fixable));
  fix_all_->setEnabled(fixable > 0);
  if (chosen() < 0 && lint_.findings().rowCount() > 0) table_->selectRow(0);
  show_row();
}

void LintPanel::show_row() {
  const int row = chosen();
  const bool is_one = row >= 0 && row < lint_.findings().rowCount();
  detail_->setText(is_one ? lint_.findings().row(row).detail : QString());
  fix_->setEnabled(is_one && !lint_.findings().row(row).edits.empty());
}

}  // namespace shardplan::gui
