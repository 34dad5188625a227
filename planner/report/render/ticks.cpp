#include "report/render/ticks.h"

#include <fmt/format.h>

#include <array>

#include "base/format.h"

namespace shardplan::report {
namespace {

/// 1, 2 or 5 times a power of ten, so that at most five and a half steps reach `most`.
double round_step(double most) {
  double step = 0.1;
  while (most / step > 55) step *= 10;
  for (const double factor : {2.0, 5.0, 10.0})
    if (most / (step * factor) <= 5.5) return step * factor;
  return step * 10;
}

}  // namespace

void for_each_tick(double most, Unit unit,
                   const std::function<void(double at, const std::string& label)>& draw) {
  constexpr std::array kBytes{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double scale = 1;
  std::size_t u = 0;
  if (unit == Unit::bytes)
    for (; most / scale >= 1024 && u + 1 < kBytes.size(); ++u) scale *= 1024;
  const double step = round_step(most / scale);
  for (double at = 0; at * scale <= most; at += step)
    draw(at * scale, unit == Unit::bytes ? fmt::format("{:g} {}", at, kBytes[u])
                                         : format_count(static_cast<std::int64_t>(at)));
}

}  // namespace shardplan::report
