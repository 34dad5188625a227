#include "wizard/plan_page.h"

#include <QFontDatabase>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "models/saved_files.h"
#include "models/text.h"
#include "views/widgets.h"

namespace shardplan::gui {

PlanPage::PlanPage(Session& session, QWidget* parent) : Page(session, tr("Plan"), parent) {
  auto* layout = new QHBoxLayout(this);
  auto* search = new QVBoxLayout;
  search_ = new SearchPanel(session, this);
  search->addWidget(search_);
  layout->addWidget(make_box(tr("Search"), search, this), 3);
  layout->addWidget(make_exports(), 2);
}

QWidget* PlanPage::make_exports() {
  command_ = make_text(this);
  command_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  command_->setObjectName(QStringLiteral("command"));
  const auto button = [this](const QString& name, auto action) {
    auto* b = new QPushButton(name, this);
    connect(b, &QPushButton::clicked, this, action);
    return b;
  };
  files_ = new QTabWidget(this);
  files_->setAccessibleName(tr("The files that run this plan"));
  auto* buttons = new QGridLayout;
  buttons->addWidget(button(tr("&Copy the command line"), &PlanPage::copy_asked), 0, 0);
  buttons->addWidget(button(tr("Save the &job…"), &PlanPage::save_asked), 0, 1);
  buttons->addWidget(button(tr("Save a &report…"), &PlanPage::report_asked), 1, 0);
  buttons->addWidget(button(tr("&Export these files…"), &PlanPage::export_asked), 1, 1);
  auto* layout = new QVBoxLayout;
  layout->addWidget(command_);
  layout->addLayout(buttons);
  layout->addWidget(files_, 1);
  return make_box(tr("Use this plan"), layout, this);
}

void PlanPage::refresh() {
  const auto command = command_to_copy(document());
  command_->setText(command ? text(*command)
                            : tr("Flags cannot describe all of this job. Save it, and the command "
                                 "line will read the file."));
  while (files_->count() > 0) {
    QWidget* old = files_->widget(0);
    files_->removeTab(0);
    old->deleteLater();
  }
  if (!answer().job) return;
  for (const PlanFile& file : plan_files(answer(), document().json())) {
    auto* view = new QPlainTextEdit(text(file.text), files_);
    view->setReadOnly(true);
    view->setTabChangesFocus(true);
    view->setLineWrapMode(QPlainTextEdit::NoWrap);
    view->setAccessibleName(text(file.name));
    view->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    files_->addTab(view, text(file.name));
  }
}

}  // namespace shardplan::gui
