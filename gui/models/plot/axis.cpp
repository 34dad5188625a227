#include "models/plot/axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"

namespace shardplan::gui {
namespace {

constexpr double kDecade = 10;      // values that span more are shown on a logarithmic scale
constexpr double kFarFromZero = 3;  // times the span: then the axis does not begin at 0

/// As many digits as the number has, up to `most`.
QString digits(double value, int most) {
  return QString::number(value, 'g', most);
}

/// A value with the largest of the units that leaves at least 1.
template <std::size_t N>
QString with_unit(double value, const std::array<std::pair<double, const char*>, N>& units,
                  int most) {
  for (const auto& [size, name] : units)
    if (std::abs(value) >= size * (1 - 1e-9))
      return QStringLiteral("%1%2").arg(digits(value / size, most), QString::fromUtf8(name));
  return digits(value, most);
}

constexpr int kDigits = 4;

std::int64_t multiples_between(double least, double most, double step) {
  return static_cast<std::int64_t>(std::floor(most / step * (1 + 1e-12))) -
         static_cast<std::int64_t>(std::ceil(least / step - 1e-9)) + 1;
}

/// The smallest step of the unit's kind with at most `most_ticks` multiples between the two.
double step_for(PlotUnit unit, double least, double most, int most_ticks) {
  const bool binary = unit == PlotUnit::bytes;
  const double rough = (most - least) / (2.0 * most_ticks);  // surely too small
  double step = std::pow(binary ? 2 : 10, std::floor(std::log(rough) / std::log(binary ? 2 : 10)));
  if (binary) step = std::max(step, 1.0);
  for (;; step *= binary ? 2 : 10)
    for (const double factor : binary ? std::vector<double>{1} : std::vector<double>{1, 2, 5})
      if (multiples_between(least, most, factor * step) <= most_ticks) return factor * step;
}

bool whole(PlotUnit unit) {
  return unit == PlotUnit::count;
}

}  // namespace

QString tick_text(PlotUnit unit, double value) {
  if (value == 0) return QStringLiteral("0");
  static constexpr std::array<std::pair<double, const char*>, 5> kBytes{
      {{static_cast<double>(kGiB) * 1024, " TiB"},
       {static_cast<double>(kGiB), " GiB"},
       {static_cast<double>(kMiB), " MiB"},
       {static_cast<double>(kKiB), " KiB"},
       {1, " B"}}};
  static constexpr std::array<std::pair<double, const char*>, 5> kSeconds{
      {{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}, {1e-12, " ps"}}};
  static constexpr std::array<std::pair<double, const char*>, 4> kThousands{
      {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
  switch (unit) {
    case PlotUnit::bytes:
      return with_unit(value, kBytes, kDigits);
    case PlotUnit::seconds:
      return with_unit(value, kSeconds, kDigits);
    case PlotUnit::days:
    case PlotUnit::money:
    case PlotUnit::count:
    case PlotUnit::number:
      break;
  }
  return with_unit(value, kThousands, kDigits);
}

PlotAxis::PlotAxis(PlotUnit unit, PlotScale scale, const std::vector<double>& values)
    : unit_(unit) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (values.empty()) return;
  const bool can_be_logarithmic = *low > 0;
  logarithmic_ = can_be_logarithmic && (scale == PlotScale::logarithmic ||
                                        (scale == PlotScale::automatic && *high / *low > kDecade));
  if (logarithmic_) {
    const double room = std::pow(std::max(*high / *low, 1.5), 0.06);
    least_ = *low / room;
    most_ = *high * room;
    return;
  }
  const double span = *high - *low;
  const bool from_zero = *low >= 0 && (span == 0 || *low < kFarFromZero * span);
  const double room = span > 0 ? 0.07 * span : 0.1 * std::max(std::abs(*high), 1.0);
  least_ = from_zero ? 0 : *low - room;
  most_ = *high + (from_zero ? 0.07 * std::max(*high, room) : room);
  if (most_ <= least_) most_ = least_ + 1;
}

double PlotAxis::place(double value) const {
  if (!logarithmic_) return (value - least_) / (most_ - least_);
  return value > 0 ? std::log(value / least_) / std::log(most_ / least_) : -1;
}

std::vector<double> PlotAxis::linear_ticks(int most) const {
  double step = step_for(unit_, least_, most_, most);
  if (whole(unit_)) step = std::max(step, 1.0);
  std::vector<double> at;
  for (double i = std::ceil(least_ / step - 1e-9); i * step <= most_ * (1 + 1e-12); ++i)
    at.push_back(i * step);
  return at;
}

/// Powers of two for bytes, else 1, 2 and 5 times powers of ten, or fewer of them.
std::vector<double> PlotAxis::logarithmic_ticks(int most) const {
  const bool binary = unit_ == PlotUnit::bytes;
  const double base = binary ? 2 : 10;
  const int first = static_cast<int>(std::floor(std::log(least_) / std::log(base)));
  const int last = static_cast<int>(std::ceil(std::log(most_) / std::log(base)));
  const auto collect = [&](const std::vector<double>& factors, int stride) {
    std::vector<double> at;
    const int start = static_cast<int>(std::floor(static_cast<double>(first) / stride)) * stride;
    for (int power = start; power <= last; power += stride)
      for (const double factor : factors)
        if (const double value = factor * std::pow(base, power);
            value >= least_ * (1 - 1e-9) && value <= most_ * (1 + 1e-9))
          at.push_back(value);
    return at;
  };
  if (!binary)
    for (const auto& factors : {std::vector<double>{1, 2, 5}, std::vector<double>{1, 3}})
      if (auto at = collect(factors, 1); static_cast<int>(at.size()) <= most) return at;
  for (int stride = 1; stride <= last - first + 1; ++stride)
    if (auto at = collect({1}, stride); static_cast<int>(at.size()) <= most) return at;
  return {};
}

std::vector<Tick> PlotAxis::ticks(int most) const {
  std::vector<double> at = logarithmic_ ? logarithmic_ticks(most) : linear_ticks(most);
  constexpr std::size_t kFewest = 2;
  if (logarithmic_ && at.size() < kFewest) at = linear_ticks(most);  // less than an octave is seen
  std::vector<Tick> ticks;
  for (const double value : at)
    if (!whole(unit_) || value == std::floor(value))
      ticks.push_back({value, tick_text(unit_, value)});
  return ticks;
}

}  // namespace shardplan::gui
