// GPUs that hold different parts: a slim bar for each kind of them, under one scale.
#pragma once

#include <QWidget>
#include <vector>

#include "views/share_bar.h"
#include "views/text_label.h"

namespace shardplan::gui {

class RankBars : public QWidget {
  Q_OBJECT

 public:
  explicit RankBars(QWidget* parent = nullptr);
  /// Nothing is shown when all GPUs are alike.
  void set_answer(const Answer& answer, const Calibration& calibration);

 private:
  struct Row {
    TextLabel* name;
    ShareBar* bar;
  };
  std::vector<Row> rows_;
};

}  // namespace shardplan::gui
