// GPUs that hold different parts: a slim bar for each kind of them, under one scale.
#pragma once

#include <QWidget>
#include <vector>

#include "models/session.h"
#include "views/share_bar.h"
#include "views/text_label.h"

namespace shardplan::gui {

class RankBars : public QWidget {
  Q_OBJECT

 public:
  explicit RankBars(Session& session, QWidget* parent = nullptr);
  /// Brings the bars up to the session's answer. Nothing is shown when all GPUs are alike.
  void refresh();

 private:
  struct Row {
    TextLabel* name;
    ShareBar* bar;
  };
  Session& session_;
  std::vector<Row> rows_;
};

}  // namespace shardplan::gui
