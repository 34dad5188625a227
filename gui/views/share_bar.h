// A stacked bar: memory by category under a line of capacity, or seconds by activity.
#pragma once

#include <QBrush>
#include <QWidget>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/estimate_models.h"
#include "views/legend.h"

namespace shardplan::gui {

class ShareBar : public QWidget {
  Q_OBJECT

 public:
  /// `ink` gives the brush of a Share::colour.
  explicit ShareBar(std::function<QBrush(int)> ink, QWidget* parent = nullptr);

  /// `limit`: where the line of capacity stands; `upper`: the end of the band of the upper bound.
  /// 0: none.
  void set_shares(std::vector<Share> shares, double limit = 0, double upper = 0,
                  QString limit_text = {});
  /// Gives the hint of a share that has none of its own, when somebody asks.
  void set_hints(std::function<QString(std::size_t)> hint_of);
  /// The value at the right end at least: bars side by side have one scale.
  void set_longest(double longest);

  enum class LegendWords : std::uint8_t { names, names_and_amounts };
  /// Every part, and the band of the upper bound.
  std::vector<LegendEntry> legend(LegendWords words) const;

  QSize sizeHint() const override { return {400, 58}; }
  QSize minimumSizeHint() const override { return {120, 48}; }

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  QRectF bar_area() const;
  QRectF area_of(std::size_t share) const;
  QRectF area_of_words(const QRectF& part) const;
  double x_of_limit() const;
  void paint_label(QPainter& painter, const Share& share, const QRectF& part) const;
  int share_at(const QPointF& position) const;
  void select(int share);
  QString hint_of(std::size_t share) const;
  double scale() const;  ///< the value at the right end

  std::function<QBrush(int)> ink_;
  std::function<QString(std::size_t)> hint_of_;
  std::vector<Share> shares_;
  double total_ = 0, limit_ = 0, upper_ = 0, longest_ = 0;
  QString limit_text_;
  int selected_ = -1;
};

}  // namespace shardplan::gui
