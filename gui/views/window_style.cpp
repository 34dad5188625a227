#include "views/window_style.h"

#include <QListWidget>
#include <QPainter>
#include <QStyleFactory>
#include <QStyleOption>

namespace shardplan::gui {

WindowStyle::WindowStyle() : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))) {}

void WindowStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option,
                                QPainter* painter, const QWidget* widget) const {
  QProxyStyle::drawPrimitive(element, option, painter, widget);
  if (element != PE_IndicatorCheckBox && element != PE_IndicatorItemViewItemCheck) return;
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing, false);
  painter->setBrush(Qt::NoBrush);
  const bool enabled = option->state.testFlag(State_Enabled);
  painter->setPen(option->palette.color(enabled ? QPalette::PlaceholderText : QPalette::Mid));
  painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
  painter->restore();
}

int WindowStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                           QStyleHintReturn* data) const {
  if (hint == SH_ItemView_ActivateItemOnSingleClick && qobject_cast<const QListWidget*>(widget))
    return 1;
  return QProxyStyle::styleHint(hint, option, widget, data);
}

}  // namespace shardplan::gui
