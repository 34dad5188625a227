// A small bar: how much of a resource is needed, up to the upper bound, of what there is.
#pragma once

#include <QWidget>

namespace shardplan::gui {

class MeterBar : public QWidget {
  Q_OBJECT

 public:
  explicit MeterBar(QWidget* parent = nullptr);
  /// In one unit; `available` 0: not known, and no mark for it.
  void set_amounts(double needed, double upper, double available);

  QSize sizeHint() const override { return {160, 12}; }
  QSize minimumSizeHint() const override { return {80, 12}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  double needed_ = 0, upper_ = 0, available_ = 0;
};

}  // namespace shardplan::gui
