// The verdict on GPU, host and NVMe, each with its margin, as words and as a small bar.
#pragma once

#include <QWidget>
#include <array>
#include <vector>

#include "models/estimate_models.h"
#include "views/meter_bar.h"
#include "views/text_label.h"

namespace shardplan::gui {

class ResourcePanel : public QWidget {
  Q_OBJECT

 public:
  explicit ResourcePanel(QWidget* parent = nullptr);
  void set_resources(const std::vector<ResourceLine>& lines);

 private:
  struct Row {
    TextLabel *name, *verdict, *amount;
    MeterBar* bar;
    TextLabel* margin;
  };
  std::array<Row, 3> rows_;
};

}  // namespace shardplan::gui
