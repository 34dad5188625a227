#include "views/legend_delegate.h"

#include <QPainter>

#include "models/rows_model.h"
#include "views/colours.h"
#include "views/legend.h"

namespace shardplan::gui {
namespace {

constexpr int kRowSquare = 12;
constexpr int kSpace = kRowSquare + 8;

}  // namespace

void LegendDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                           const QModelIndex& index) const {
  QStyleOptionViewItem rest = option;
  rest.rect.adjust(kSpace, 0, 0, 0);
  QStyledItemDelegate::paint(painter, rest, index);
  const QRect square(option.rect.left() + 4, option.rect.center().y() - kRowSquare / 2, kRowSquare,
                     kRowSquare);
  paint_swatch(*painter, square, category_brush(index.data(kValueRole).toInt()), option.palette);
}

QSize LegendDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  return QStyledItemDelegate::sizeHint(option, index) + QSize(kSpace, 0);
}

}  // namespace shardplan::gui
