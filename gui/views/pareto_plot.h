// The plans that no other plan beats, as points: memory per GPU across, time for a token up.
#pragma once

#include <QWidget>
#include <vector>

namespace shardplan::gui {

struct PlotPoint {
  double x = 0, y = 0;
  QString label;  ///< beside the selected point
  QString hint;   ///< on hover
};

class ParetoPlot : public QWidget {
  Q_OBJECT

 public:
  explicit ParetoPlot(QWidget* parent = nullptr);

  struct Axis {
    QString title;
    QString (*text_of)(double) = nullptr;  ///< of a value, at the ticks
  };
  void set_axes(Axis x, Axis y);
  /// `limit`: a line at this x, 0: none.
  void set_points(std::vector<PlotPoint> points, double limit);
  void select(int point);
  int selected() const { return selected_; }

  QSize sizeHint() const override { return {420, 260}; }
  QSize minimumSizeHint() const override { return {220, 140}; }

 Q_SIGNALS:
  void selection_changed(int point);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QRectF plot() const;
  QPointF place_of(const PlotPoint& point) const;
  int point_at(const QPointF& position) const;
  void paint_axes(QPainter& painter) const;

  Axis x_, y_;
  std::vector<PlotPoint> points_;
  std::vector<int> from_left_;  ///< points in the order of x: where the arrow keys go
  double most_x_ = 1, most_y_ = 1, limit_ = 0;
  int selected_ = -1;
};

}  // namespace shardplan::gui
