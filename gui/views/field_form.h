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
  /// Brings all fields up to the session's answer. What is wrong with a field is told below it.
  void refresh();
  /// Whether the session's error is told at one of the fields.
  bool shows_error() const { return shows_error_; }

 private:
  struct Row {
    TrainingField field;
    QWidget* editor;  ///< a QComboBox with choices, else a QSpinBox
    QLabel* label;
    QLabel* standing;
    QLabel* error;
  };
  QWidget* make_editor(std::size_t row);
  void refresh_row(const Row& row);
  /// Whether the session's error is about the field.
  bool is_wrong(const Row& row) const;

  Session& session_;
  std::vector<Row> rows_;
  bool is_refreshing_ = false, shows_error_ = false;
};

}  // namespace shardplan::gui
