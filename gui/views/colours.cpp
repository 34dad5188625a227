#include "views/colours.h"

#include <array>
#include <cmath>

namespace shardplan::gui {
namespace {

struct Ink {
  QRgb colour;
  Qt::BrushStyle style = Qt::SolidPattern;
};

// In the order of Category.
constexpr std::array<Ink, kCategoryCount> kCategories{{
    {0xff0072b2},                        // parameters: blue
    {0xffe69f00},                        // gradients: orange
    {0xff6cdce7},                        // master parameters: light blue
    {0xffde3715},                        // optimizer states: vermilion
    {0xff09b87b},                        // activations: green
    {0xfff0e442},                        // logits and loss: yellow
    {0xffaa6f92},                        // gathered parameters: purple
    {0xff44aa99, Qt::Dense3Pattern},     // communication buffers
    {0xffa04a2d},                        // workspace: brown
    {0xff999999, Qt::BDiagPattern},      // fragmentation
    {0xff545454},                        // CUDA context
    {0xffaaaaaa, Qt::DiagCrossPattern},  // NCCL
    {0xffafafaf},                        // other
    {0xff332288},                        // KV cache: indigo
}};
/// Of the same kind, without those that are too light for a white ground.
constexpr std::array<QRgb, 7> kSeries{0xff0072b2, 0xffe69f00, 0xff09b87b, 0xffaa6f92,
                                      0xffa04a2d, 0xff6cb8e7, 0xff777777};
constexpr std::array<Ink, 6> kActivities{{{0xff0072b2},
                                          {0xffd55e00},
                                          {0xffcc79a7, Qt::Dense3Pattern},
                                          {0xff009e73},
                                          {0xff999999, Qt::BDiagPattern},
                                          {0xff666666, Qt::DiagCrossPattern}}};

template <std::size_t N>
QBrush brush_of(const std::array<Ink, N>& inks, int at) {
  const Ink& ink = inks[static_cast<std::size_t>(at) % N];
  return QBrush(QColor::fromRgba(ink.colour), ink.style);
}

/// Of WCAG 2: 0 of black, 1 of white.
double luminance(const QColor& colour) {
  const auto light = [](float channel) {
    const auto c = static_cast<double>(channel);
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * light(colour.redF()) + 0.7152 * light(colour.greenF()) +
         0.0722 * light(colour.blueF());
}

QPalette palette_of(QRgb window, QRgb base, QRgb ink, QRgb dim, QRgb highlight, QRgb link) {
  const QColor text = QColor::fromRgba(ink);
  QPalette p(text, QColor::fromRgba(window), QColor::fromRgba(window).lighter(130),
             QColor::fromRgba(window).darker(150), QColor::fromRgba(dim), text, Qt::white,
             QColor::fromRgba(base), QColor::fromRgba(window));
  p.setColor(QPalette::Button, QColor::fromRgba(window));
  p.setColor(QPalette::AlternateBase, QColor::fromRgba(window));
  p.setColor(QPalette::Highlight, QColor::fromRgba(highlight));
  p.setColor(QPalette::HighlightedText, Qt::white);
  p.setColor(QPalette::Link, QColor::fromRgba(link));
  p.setColor(QPalette::ToolTipBase, QColor::fromRgba(base));
  p.setColor(QPalette::ToolTipText, text);
  p.setColor(QPalette::PlaceholderText, QColor::fromRgba(dim));
  for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, QColor::fromRgba(dim));
  return p;
}

}  // namespace

QBrush category_brush(int category) {
  return brush_of(kCategories, category);
}

QBrush time_brush(int activity) {
  return brush_of(kActivities, activity);
}

QBrush upper_bound_brush(const QPalette& palette) {
  return QBrush(palette.color(QPalette::PlaceholderText), Qt::Dense6Pattern);
}

QColor ink_on(const QColor& ground) {
  constexpr double kEven = 0.179;  // black and white stand out alike: √(1.05 · 0.05) − 0.05
  return luminance(ground) > kEven ? Qt::black : Qt::white;
}

QColor verdict_colour(Fit fit, const QPalette& palette) {
  const bool dark = is_dark(palette);
  switch (fit) {
    case Fit::fits:
      return QColor::fromRgba(dark ? 0xff3ec9a0 : 0xff00664a);
    case Fit::tight:
      return QColor::fromRgba(dark ? 0xfff0b840 : 0xff8a5a00);
    case Fit::does_not_fit:
      return QColor::fromRgba(dark ? 0xffff8a50 : 0xffa83c00);
    case Fit::unknown:
      break;
  }
  return palette.color(QPalette::WindowText);
}

QColor grid_colour(const QPalette& palette) {
  return is_dark(palette) ? QColor::fromRgba(0xff34383d) : QColor::fromRgba(0xffe4e4e0);
}

QColor series_colour(int series) {
  return QColor::fromRgba(kSeries[static_cast<std::size_t>(series) % kSeries.size()]);
}

QColor chosen_colour() {
  return QColor::fromRgba(0xffde3715);
}

QString verdict_sign(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return QStringLiteral("✓");
    case Fit::tight:
      return QStringLiteral("≈");
    case Fit::does_not_fit:
      return QStringLiteral("✗");
    case Fit::unknown:
      break;
  }
  return QStringLiteral("?");
}

QPalette light_palette() {
  return palette_of(0xfff3f3f1, 0xffffffff, 0xff1b1b1b, 0xff6a6a6a, 0xff0060a0, 0xff0060a0);
}

QPalette dark_palette() {
  return palette_of(0xff26282b, 0xff1b1d1f, 0xffececec, 0xff9aa0a6, 0xff2a78b8, 0xff6db3ee);
}

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::Window).lightness() < 128;
}

}  // namespace shardplan::gui
