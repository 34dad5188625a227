// Cells that differ from the first plan's stand out: bold, on a ground of their own.
#pragma once

#include <QStyledItemDelegate>

#include "models/plan_table.h"

namespace shardplan::gui {

class DiffersDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  using QStyledItemDelegate::QStyledItemDelegate;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    if (!index.data(kDiffersRole).toBool()) return;
    option->font.setBold(true);
    QColor ground = option->palette.color(QPalette::Highlight);
    ground.setAlpha(40);
    option->backgroundBrush = ground;
  }
};

}  // namespace shardplan::gui
