// A plot with points that are read, chosen with the mouse or the arrow keys, and saved as a
// picture.
#pragma once

#include <QWidget>

#include "models/plot/plot.h"

namespace shardplan::gui {

class PlotView : public QWidget {
  Q_OBJECT

 public:
  explicit PlotView(QWidget* parent = nullptr);

  /// Nothing is chosen afterwards.
  void set_data(PlotData data);
  const PlotData& data() const { return data_; }
  void select(int point);
  int selected() const { return focus_.selected; }
  /// Writes the plot as it is seen; ".svg" makes a drawing, anything else a PNG. False when the
  /// file cannot be written.
  bool save(const QString& path) const;
  /// Asks for a file and writes it.
  void ask_and_save();

  QSize sizeHint() const override { return {420, 260}; }
  QSize minimumSizeHint() const override { return {220, 130}; }

 Q_SIGNALS:
  void selection_changed(int point);
  void saved(const QString& path);
  void not_saved(const QString& path);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  PlotLayout laid_out() const { return {data_, QSizeF(size()), font()}; }
  PlotInks inks() const;
  void hover(int point);

  PlotData data_;
  PlotFocus focus_;
  std::vector<int> from_left_;  ///< points in the order of x: where the arrow keys go
};

/// Paints a drawing; the painter's font is used.
void paint(QPainter& painter, const Drawing& drawing);

}  // namespace shardplan::gui
