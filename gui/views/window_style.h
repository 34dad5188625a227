// The windows' style: Qt's Fusion, with what it leaves too faint on a dark ground.
#pragma once

#include <QProxyStyle>

namespace shardplan::gui {

class WindowStyle : public QProxyStyle {
  Q_OBJECT

 public:
  WindowStyle();

  /// Boxes to tick have a frame that is seen on any ground, ticked or not.
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  /// A click in a list is enough, as Return is.
  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                QStyleHintReturn* data) const override;
};

}  // namespace shardplan::gui
