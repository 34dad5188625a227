// A slider over a list of values, with its label and its value in words.
#pragma once

#include <QSlider>
#include <QWidget>
#include <vector>

#include "models/training_fields.h"
#include "views/text_label.h"

namespace shardplan::gui {

class ChoiceSlider : public QWidget {
  Q_OBJECT

 public:
  /// `field` without choices slides over `values`.
  ChoiceSlider(Session& session, TrainingField field, std::vector<qint64> values,
               QWidget* parent = nullptr);
  void refresh();

 private:
  std::vector<Choice> stops_with(const Job& job, const QVariant& now) const;
  void moved(int at);

  Session& session_;
  TrainingField field_;
  std::vector<qint64> values_;
  std::vector<Choice> stops_;
  TextLabel* value_;
  QSlider* slider_;
  bool is_refreshing_ = false;
};

}  // namespace shardplan::gui
