// Live memory through a step, stacked by category, with the peak marked; hovering, or the arrow
// keys, name what is alive.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/timeline.h"

namespace shardplan::gui {

class TimelineView : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);

  /// `room`: what tensors may take of the GPU, drawn as a line; 0: none.
  void set_timeline(std::shared_ptr<const MemoryTimeline> timeline, double room);

  QSize sizeHint() const override { return {480, 170}; }
  QSize minimumSizeHint() const override { return {160, 110}; }

  /// What is alive at a point, in words: as hovering shows it.
  QString description_of(std::size_t point) const;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  /// Points of one phase of one micro-batch in a row, and where they are drawn: from 0 to 1.
  struct Stretch {
    std::size_t begin = 0, end = 0;
    double left = 0, right = 0;
  };
  void lay_out();
  QRectF plot() const;
  double x_of(std::size_t point) const;
  double y_of(double bytes) const;
  std::size_t point_at(double x) const;
  double highest() const;
  std::vector<std::size_t> columns() const;
  void paint_areas(QPainter& painter) const;
  void paint_phases(QPainter& painter) const;
  void paint_marks(QPainter& painter) const;
  void move_cursor(std::size_t point);

  bool is_empty() const { return timeline_ == nullptr; }
  const std::vector<TimelinePoint>& points() const { return timeline_->points; }

  std::shared_ptr<const MemoryTimeline> timeline_;  ///< null until there is one
  std::vector<Stretch> stretches_;
  double room_ = 0;
  std::optional<std::size_t> cursor_;
};

}  // namespace shardplan::gui
