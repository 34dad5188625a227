// What people with another colour vision see: no two colours of a bar may look alike.
#include "views/colours.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace shardplan::gui {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

/// On linear RGB: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of
/// Color Vision Deficiency", IEEE TVCG 2009, severity 1.
struct Vision {
  const char* name;
  Matrix matrix;
};
const std::array kVisions{
    Vision{"normal", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    Vision{"protanopia",
           {{{0.152286, 1.052583, -0.204868},
             {0.114503, 0.786281, 0.099216},
             {-0.003882, -0.048116, 1.051998}}}},
    Vision{"deuteranopia",
           {{{0.367322, 0.860646, -0.227968},
             {0.280085, 0.672501, 0.047413},
             {-0.011820, 0.042940, 0.968881}}}},
    Vision{"tritanopia",
           {{{1.255528, -0.076749, -0.178779},
             {-0.078411, 0.930809, 0.147602},
             {0.004733, 0.691367, 0.303900}}}},
};

Vector product(const Matrix& matrix, const Vector& v) {
  Vector out{};
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
  return out;
}

/// sRGB to light (IEC 61966-2-1).
double linear(double c) {
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

/// CIE L*a*b* under D65 of what that eye sees.
Vector seen(const QColor& colour, const Vision& vision) {
  Vector light = product(vision.matrix,
                         {linear(colour.redF()), linear(colour.greenF()), linear(colour.blueF())});
  for (double& c : light) c = std::clamp(c, 0.0, 1.0);
  const Vector xyz = product({{{0.4124564, 0.3575761, 0.1804375},
                               {0.2126729, 0.7151522, 0.0721750},
                               {0.0193339, 0.1191920, 0.9503041}}},
                             light);
  const auto f = [](double t) {
    return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  };
  const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

/// CIE 1976; 2.3 is what a trained eye just tells apart side by side.
double difference(const QColor& a, const QColor& b, const Vision& vision) {
  const Vector p = seen(a, vision), q = seen(b, vision);
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

/// Plain colours must differ; a hatched part is told by its pattern, from plain ones and others.
void expect_apart(const std::vector<QBrush>& brushes, double least) {
  for (const Vision& vision : kVisions)
    for (std::size_t a = 0; a < brushes.size(); ++a)
      for (std::size_t b = a + 1; b < brushes.size(); ++b) {
        if (brushes[a].style() != brushes[b].style()) continue;
        EXPECT_EQ(brushes[a].style(), Qt::SolidPattern) << a << " and " << b;
        EXPECT_GE(difference(brushes[a].color(), brushes[b].color(), vision), least)
            << vision.name << ": " << a << " and " << b;
      }
}

TEST(Colours, OfTheSimulationAreTheKnownOnes) {
  EXPECT_NEAR(difference(Qt::white, Qt::black, kVisions[0]), 100, 0.01);
  // Red and green of one lightness: far apart, but not for those who lack a cone.
  const QColor red(0xc0, 0x40, 0x20), green(0x60, 0x70, 0x10);
  EXPECT_GT(difference(red, green, kVisions[0]), 60);
  EXPECT_LT(difference(red, green, kVisions[2]), 25);
}

TEST(Colours, OfMemoryStayApartForEveryEye) {
  std::vector<QBrush> brushes;
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    brushes.push_back(category_brush(static_cast<int>(c)));
  expect_apart(brushes, 16);
}

TEST(Colours, OfTimeStayApartForEveryEye) {
  std::vector<QBrush> brushes;
  for (int activity = 0; activity < 6; ++activity) brushes.push_back(time_brush(activity));
  expect_apart(brushes, 16);
}

/// WCAG 2's contrast ratio.
double contrast(const QColor& a, const QColor& b) {
  const auto luminance = [](const QColor& c) {
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
  };
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

TEST(Colours, OfWordsAreReadableOnBothGrounds) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    const QColor window = palette.color(QPalette::Window), base = palette.color(QPalette::Base);
    for (const QColor& ground : {window, base}) {
      EXPECT_GE(contrast(palette.color(QPalette::WindowText), ground), 7);
      EXPECT_GE(contrast(palette.color(QPalette::PlaceholderText), ground), 4.5);
      for (const Fit fit : {Fit::fits, Fit::tight, Fit::does_not_fit})
        EXPECT_GE(contrast(verdict_colour(fit, palette), ground), 4.5);
    }
    EXPECT_GE(
        contrast(palette.color(QPalette::HighlightedText), palette.color(QPalette::Highlight)),
        4.5);
  }
}

}  // namespace
}  // namespace shardplan::gui
