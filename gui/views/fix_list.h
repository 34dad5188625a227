// What would make more room: each change with its price, and a button that applies it.
#pragma once

#include <QPushButton>
#include <QWidget>
#include <vector>

#include "models/fixes.h"
#include "views/text_label.h"

class QVBoxLayout;

namespace shardplan::gui {

class FixList : public QWidget {
  Q_OBJECT

 public:
  explicit FixList(Session& session, QWidget* parent = nullptr);
  void refresh();

 private:
  /// Kept when the fixes change, so that the keyboard stays where it is.
  struct Row {
    QWidget* whole;
    TextLabel* label;
    QPushButton* apply;
  };
  void add_row();
  void show_row(const Row& row, const FixWords& fix);

  Session& session_;
  QVBoxLayout* layout_;
  TextLabel* remark_;
  std::vector<Row> rows_;
};

}  // namespace shardplan::gui
