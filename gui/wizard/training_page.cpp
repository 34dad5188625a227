#include "wizard/training_page.h"

#include <QHBoxLayout>
#include <QTabWidget>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "models/messages.h"
#include "models/text.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {

TrainingPage::TrainingPage(Session& session, QWidget* parent)
    : Page(session, tr("Training"), parent) {
  error_ = make_error(this);
  form_ = new FieldForm(session, TrainingFields::all(), this);
  options_ = new OptionList(session, this);
  tabs_ = new QTabWidget(this);
  tabs_->setObjectName(QStringLiteral("training_tabs"));
  auto* usual = new QWidget(this);
  auto* inside = new QVBoxLayout(usual);
  inside->setContentsMargins(space(), space(), half_space(), half_space());
  inside->addWidget(make_scroll(form_, usual));
  tabs_->addTab(usual, tr("The usual ones"));
  tabs_->addTab(options_, tr("All options"));
  connect(tabs_, &QTabWidget::currentChanged, this, &TrainingPage::refresh);
  auto* left = new QVBoxLayout;
  left->addWidget(tabs_);
  auto* halves = new QHBoxLayout;
  how_ = make_box({}, left, this);
  halves->addWidget(how_, 1);
  halves->addWidget(make_box(tr("DeepSpeed configuration"), make_config_side(), this), 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(error_);
  layout->addLayout(halves, 1);
}

QLayout* TrainingPage::make_config_side() {
  auto* layout = new QVBoxLayout;
  file_ = make_text(this);
  auto* open = new QPushButton(tr("Open &ds_config.json…"), this);
  connect(open, &QPushButton::clicked, this, &TrainingPage::open_asked);
  drop_ = new QPushButton(tr("Re&move it from the job"), this);
  connect(drop_, &QPushButton::clicked, this, [this] {
    Json job = document().json();
    set_field(job, "/framework/ds_config", nullptr);
    session().document().replace(std::move(job));
  });
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(open);
  buttons->addWidget(drop_);
  buttons->addStretch();
  lint_ = new LintPanel(session(), this);
  layout->addWidget(file_);
  layout->addLayout(buttons);
  layout->addWidget(lint_, 1);
  layout->addStretch();
  return layout;
}

void TrainingPage::take_focus() {
  form_->setFocus();
}

void TrainingPage::refresh() {
  how_->setTitle(trains() ? tr("How it is trained") : tr("How it runs"));
  form_->refresh();
  if (tabs_->currentWidget() == options_) options_->refresh();
  const bool is_above = answer().error && !form_->shows_error();
  show_error(error_, is_above ? Messages::of(*answer().error) : QString());
  const auto config = field_of(document().json(), "/framework/ds_config");
  drop_->setEnabled(config.has_value());
  if (!config) {
    file_->setText(
        tr("No file: the choices on the left decide. Open or drop a ds_config.json to use it "
           "unchanged; what is wrong with it is listed here."));
  } else if (config->is_string()) {
    file_->setText(text(config->get<std::string>()));
  } else {
    file_->setText(tr("Inside the job, with %1 keys at its top level.").arg(config->size()));
  }
  lint_->refresh();
}

}  // namespace shardplan::gui
