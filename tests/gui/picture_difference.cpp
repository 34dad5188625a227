#include "gui/picture_difference.h"

#include <QColor>
#include <algorithm>
#include <array>
#include <vector>

namespace shardplan::gui {
namespace {

/// Of brightness and chroma, from 0 to 1, where black and white are about 0.7 apart.
constexpr double kSeen = 0.045;
constexpr int kAcross = 4, kDown = 1;  // pixels to each side that are averaged

using Plane = std::vector<float>;

/// The means over 2 · `radius` + 1 values along lines: value `at` of line `line` is at
/// line · `between_lines` + at · `between`. Beyond the ends the last value goes on.
Plane averaged(const Plane& in, int lines, int length, int between_lines, int between, int radius) {
  Plane out(in.size());
  for (int line = 0; line < lines; ++line) {
    const auto value = [&](int at) {
      return in[static_cast<std::size_t>(line * between_lines +
                                         std::clamp(at, 0, length - 1) * between)];
    };
    for (int at = 0; at < length; ++at) {
      float sum = 0;
      for (int by = -radius; by <= radius; ++by) sum += value(at + by);
      out[static_cast<std::size_t>(line * between_lines + at * between)] =
          sum / static_cast<float>(2 * radius + 1);
    }
  }
  return out;
}

/// Y, I and Q of every pixel, averaged.
std::array<Plane, 3> seen_in(const QImage& picture) {
  std::array<Plane, 3> planes;
  for (Plane& plane : planes)
    plane.reserve(static_cast<std::size_t>(picture.width()) *
                  static_cast<std::size_t>(picture.height()));
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) {
      const QRgb c = picture.pixel(x, y);
      const double r = qRed(c) / 255.0, g = qGreen(c) / 255.0, b = qBlue(c) / 255.0;
      planes[0].push_back(static_cast<float>(0.29889531 * r + 0.58662247 * g + 0.11448223 * b));
      planes[1].push_back(static_cast<float>(0.59597799 * r - 0.27417610 * g - 0.32180189 * b));
      planes[2].push_back(static_cast<float>(0.21147017 * r - 0.52261711 * g + 0.31114694 * b));
    }
  }
  const int width = picture.width(), height = picture.height();
  for (Plane& plane : planes) {
    plane = averaged(plane, height, width, width, 1, kAcross);
    plane = averaged(plane, width, height, 1, width, kDown);
  }
  return planes;
}

QRgb pale(QRgb colour) {
  const int gray = 192 + qGray(colour) / 4;
  return qRgb(gray, gray, gray);
}

}  // namespace

QImage reduced(const QImage& picture) {
  QImage out =
      picture.convertToFormat(QImage::Format_RGB32)
          .scaled(picture.size() / kReducedBy, Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
  out.setDevicePixelRatio(1);
  const auto five_bits = [](int value) { return (value * 31 + 127) / 255 * 255 / 31; };
  for (int y = 0; y < out.height(); ++y)
    for (int x = 0; x < out.width(); ++x) {
      const QRgb c = out.pixel(x, y);
      out.setPixel(x, y, qRgb(five_bits(qRed(c)), five_bits(qGreen(c)), five_bits(qBlue(c))));
    }
  return out;
}

PictureDifference difference_of(const QImage& expected, const QImage& actual) {
  if (expected.size() != actual.size())
    return {std::max(12, actual.width() * actual.height()), actual};
  const auto a = seen_in(expected), b = seen_in(actual);
  constexpr std::array<double, 3> kWeights{0.5053, 0.299, 0.1957};
  PictureDifference out{0, expected.convertToFormat(QImage::Format_RGB32)};
  for (int y = 0; y < expected.height(); ++y)
    for (int x = 0; x < expected.width(); ++x) {
      const auto at = static_cast<std::size_t>(y * expected.width() + x);
      double square = 0;
      for (std::size_t plane = 0; plane < a.size(); ++plane) {
        const double by = static_cast<double>(a[plane][at]) - static_cast<double>(b[plane][at]);
        square += kWeights[plane] * by * by;
      }
      const bool differs = square > kSeen * kSeen;
      out.differing += differs ? 1 : 0;
      out.map.setPixel(x, y, differs ? qRgb(220, 0, 0) : pale(expected.pixel(x, y)));
    }
  return out;
}

}  // namespace shardplan::gui
