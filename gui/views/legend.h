// What the colours of a bar or a plot mean: a square and words for each, in as many lines as it
// takes.
#pragma once

#include <QBrush>
#include <QWidget>
#include <vector>

namespace shardplan::gui {

struct LegendEntry {
  QString text;
  QBrush brush;  ///< of its square; Qt::NoBrush: a line, as that of capacity
};

/// The square before a name.
void paint_swatch(QPainter& painter, const QRect& square, const QBrush& brush,
                  const QPalette& palette);

class Legend : public QWidget {
  Q_OBJECT

 public:
  explicit Legend(QWidget* parent = nullptr);
  void set_entries(std::vector<LegendEntry> entries);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  int heightForWidth(int width) const override { return lines(width) * line_height(); }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  /// Where each entry begins, and how many lines there are.
  int place(int width, std::vector<QPoint>* places) const;
  int lines(int width) const { return place(width, nullptr); }
  int line_height() const;
  void measure();

  std::vector<LegendEntry> entries_;
  std::vector<int> widths_;  ///< of each entry, square and words
};

}  // namespace shardplan::gui
