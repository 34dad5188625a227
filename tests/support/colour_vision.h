// How different two colours look, to eyes with three kinds of cones and to eyes that lack one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace shardplan {

using Triple = std::array<double, 3>;

struct Vision {
  const char* name;
  std::array<Triple, 3> matrix;  ///< on linear RGB
};

/// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
/// Deficiency", IEEE TVCG 15(6), 2009, table 1, severity 1.
inline constexpr std::array<Vision, 4> kVisions{{
    {"all cones", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868},
       {0.114503, 0.786281, 0.099216},
       {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968},
       {0.280085, 0.672501, 0.047413},
       {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779},
       {-0.078411, 0.930809, 0.147602},
       {0.004733, 0.691367, 0.303900}}}},
}};

inline Triple product(const std::array<Triple, 3>& m, const Triple& v) {
  Triple out{};
  for (std::size_t i = 0; i < 3; ++i) out[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return out;
}

/// 0xRRGGBB of sRGB as light (IEC 61966-2-1).
inline Triple light_of(std::uint32_t srgb) {
  Triple light{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = static_cast<double>((srgb >> (8 * (2 - i))) & 0xff) / 255;
    light[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return light;
}

/// CIE L*a*b* under D65 of what such an eye makes of the colour.
inline Triple lab_of(std::uint32_t srgb, const Vision& vision) {
  Triple light = product(vision.matrix, light_of(srgb));
  for (double& c : light) c = std::clamp(c, 0.0, 1.0);
  const Triple xyz = product({{{0.4124564, 0.3575761, 0.1804375},
                               {0.2126729, 0.7151522, 0.0721750},
                               {0.0193339, 0.1191920, 0.9503041}}},
                             light);
  const auto f = [](double t) {
    return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  };
  const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

/// CIEDE2000 (ISO/CIE 11664-6), as Sharma, Wu and Dalal write it down (2005): about 1 is the least
/// that can be seen side by side.
inline double difference(const Triple& p, const Triple& q) {
  constexpr double kDegree = std::numbers::pi / 180;
  const auto power7 = [](double x) { return std::pow(x, 7.0); };
  const double mean_chroma = (std::hypot(p[1], p[2]) + std::hypot(q[1], q[2])) / 2;
  const double g = 0.5 * (1 - std::sqrt(power7(mean_chroma) / (power7(mean_chroma) + power7(25))));
  const double a1 = (1 + g) * p[1], a2 = (1 + g) * q[1];
  const double c1 = std::hypot(a1, p[2]), c2 = std::hypot(a2, q[2]);
  const auto hue = [](double a, double b) {
    if (a == 0 && b == 0) return 0.0;
    const double h = std::atan2(b, a) / kDegree;
    return h < 0 ? h + 360 : h;
  };
  const double h1 = hue(a1, p[2]), h2 = hue(a2, q[2]);
  const bool grey = c1 * c2 == 0;
  double dh = grey ? 0 : h2 - h1;
  if (dh > 180) dh -= 360;
  if (dh < -180) dh += 360;
  double h = h1 + h2;
  if (!grey) {
    if (std::abs(h1 - h2) > 180) h += h < 360 ? 360 : -360;
    h /= 2;
  }
  const double dl = q[0] - p[0], dc = c2 - c1;
  const double dhue = 2 * std::sqrt(c1 * c2) * std::sin(dh / 2 * kDegree);
  const double l = (p[0] + q[0]) / 2, c = (c1 + c2) / 2;
  const double t = 1 - 0.17 * std::cos((h - 30) * kDegree) + 0.24 * std::cos(2 * h * kDegree) +
                   0.32 * std::cos((3 * h + 6) * kDegree) - 0.20 * std::cos((4 * h - 63) * kDegree);
  const double turn = 30 * std::exp(-std::pow((h - 275) / 25, 2));
  const double rc = 2 * std::sqrt(power7(c) / (power7(c) + power7(25)));
  const double sl = 1 + 0.015 * std::pow(l - 50, 2) / std::sqrt(20 + std::pow(l - 50, 2));
  const double sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
  const double rt = -std::sin(2 * turn * kDegree) * rc;
  return std::sqrt(std::pow(dl / sl, 2) + std::pow(dc / sc, 2) + std::pow(dhue / sh, 2) +
                   rt * dc / sc * dhue / sh);
}

/// The ratio of WCAG 2: 4.5 for words, 3 for large ones.
inline double contrast(std::uint32_t a, std::uint32_t b) {
  const auto luminance = [](std::uint32_t srgb) {
    const Triple light = light_of(srgb);
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] + 0.05;
  };
  return std::max(luminance(a), luminance(b)) / std::min(luminance(a), luminance(b));
}

}  // namespace shardplan
