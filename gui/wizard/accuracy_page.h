// How far to trust it: predictions against the records of measured runs.
#pragma once

#include <QLabel>
#include <QProgressBar>

#include "models/accuracy_models.h"
#include "models/background.h"
#include "wizard/page.h"

namespace shardplan::gui {

class AccuracyPage : public Page {
  Q_OBJECT

 public:
  explicit AccuracyPage(Session& session, QWidget* parent = nullptr);
  bool is_busy() const override { return work_.is_running(); }

 protected:
  void refresh() override;

 private:
  void show_accuracy(const Accuracy& accuracy);

  QLabel* about_;
  QProgressBar* progress_;
  RowsModel<SummaryRow>* summaries_;
  RowsModel<RecordRow>* records_;
  bool is_begun_ = false;
  Background work_;
};

}  // namespace shardplan::gui
