// An axis of a plot: which part of a quantity it shows, on which scale, and where its ticks are.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

namespace shardplan::gui {

/// What the numbers of an axis are. Bytes have ticks at powers of two and their multiples, all
/// others at 1, 2 and 5 times a power of ten.
enum class PlotUnit : std::uint8_t { bytes, seconds, days, money, count, number };

enum class PlotScale : std::uint8_t {
  automatic,  ///< logarithmic where the values are positive and span more than a decade
  linear,
  logarithmic,
};

struct Tick {
  double value = 0;
  QString text;
};

/// "32 GiB", "1.5 GiB", "200 ms", "2 k": as short as the value allows.
QString tick_text(PlotUnit unit, double value);

class PlotAxis {
 public:
  /// Shows all of `values`. Without any, or with values that a logarithm has not, it is linear.
  PlotAxis(PlotUnit unit, PlotScale scale, const std::vector<double>& values);

  bool is_logarithmic() const { return logarithmic_; }
  double least() const { return least_; }
  double most() const { return most_; }
  /// From 0 at the least value that is shown to 1 at the most; beyond both outside.
  double place(double value) const;
  /// At most `most` of them, all within the axis.
  std::vector<Tick> ticks(int most) const;

 private:
  std::vector<double> linear_ticks(int most) const;
  std::vector<double> logarithmic_ticks(int most) const;

  PlotUnit unit_;
  bool logarithmic_ = false;
  double least_ = 0, most_ = 1;
};

}  // namespace shardplan::gui
