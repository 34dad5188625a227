// Below the verdict: how far the job could go, and the one change that helps most, with a button
// that makes it.
#pragma once

#include <QPushButton>
#include <QWidget>

#include "models/session.h"
#include "views/text_label.h"

namespace shardplan::gui {

class NextStep : public QWidget {
  Q_OBJECT

 public:
  explicit NextStep(Session& session, QWidget* parent = nullptr);
  void refresh();

 private:
  Session& session_;
  TextLabel* label_;
  QPushButton* apply_;
};

}  // namespace shardplan::gui
