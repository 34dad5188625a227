// A form of the training fields: shows what is in force, writes what is chosen.
#pragma once

#include <QLabel>
#include <QWidget>
#include <vector>

#include "models/training_fields.h"

namespace shardplan::gui {

class FieldForm : public QWidget {
  Q_OBJECT

 public:
  FieldForm(Session& session, std::vector<TrainingField> fields, QWidget* parent = nullptr);
  /// Brings all fields up to the session's answer.
  void refresh();

 private:
  struct Row {
    TrainingField field;
    QWidget* editor;  ///< a QComboBox with choices, else a QSpinBox
    QLabel* label;
    QLabel* standing;
  };
  QWidget* make_editor(std::size_t row);
  void refresh_row(const Row& row);

  Session& session_;
  std::vector<Row> rows_;
  bool is_refreshing_ = false;
};

}  // namespace shardplan::gui
