#include "wizard/accuracy_page.h"

#include <QVBoxLayout>

#include "views/widgets.h"

namespace shardplan::gui {

AccuracyPage::AccuracyPage(Session& session, QWidget* parent)
    : Page(session, tr("Accuracy"), parent) {
  about_ = make_text(this);
  progress_ = new QProgressBar(this);
  progress_->setRange(0, 0);
  progress_->setAccessibleName(tr("Comparing with the records"));
  summaries_ = AccuracyModels::summary_model(this);
  records_ = AccuracyModels::record_model(this);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(about_);
  layout->addWidget(progress_);
  layout->addWidget(make_table(summaries_, tr("Errors by framework"), this, true), 1);
  layout->addWidget(make_table(records_, tr("Records, worst first"), this, true), 1);
  connect(&work_, &Background::finished, progress_, &QWidget::hide);
  connect(&work_, &Background::failed, about_, &QLabel::setText);
}

void AccuracyPage::refresh() {
  if (is_begun_) return;
  is_begun_ = true;  // the records are compiled in: once is enough
  about_->setText(tr("Comparing every built-in record with its prediction…"));
  work_.start([this, hardware = session().workbench().hardware](const Background::Control&) {
    Accuracy accuracy = compare_with_records(built_in_records(hardware), AccuracyGroup::framework);
    return [this, accuracy = std::move(accuracy)] { show_accuracy(accuracy); };
  });
}

void AccuracyPage::show_accuracy(const Accuracy& accuracy) {
  about_->setText(tr("%1 measured training steps, each against what is predicted for its job. "
                     "Errors are (predicted − measured) ÷ measured.")
                      .arg(accuracy.comparisons.size()));
  summaries_->set_rows(AccuracyModels::summaries(accuracy));
  records_->set_rows(AccuracyModels::records(accuracy));
}

}  // namespace shardplan::gui
