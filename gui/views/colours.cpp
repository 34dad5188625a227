#include "views/colours.h"

#include <QGuiApplication>
#include <array>
#include <cmath>

#include "views/report_style.h"

namespace shardplan::gui {
namespace {

/// Of the windows' theme.
const ReportStyle& style() {
  return ReportStyle::of(is_dark(QGuiApplication::palette()));
}

/// Hatched where it is no tensor, or memory that no tensor has.
Qt::BrushStyle pattern_of(Category category) {
  switch (category) {
    case Category::communication_buffers:
      return Qt::Dense3Pattern;
    case Category::fragmentation:
      return Qt::BDiagPattern;
    case Category::cuda_context:
      return Qt::CrossPattern;
    case Category::nccl:
      return Qt::DiagCrossPattern;
    default:
      return Qt::SolidPattern;
  }
}

struct Part {
  const char* name;  ///< in the sheet
  Qt::BrushStyle pattern = Qt::SolidPattern;
};
constexpr std::array<Part, 6> kActivities{{{"compute"},
                                           {"communication"},
                                           {"copies", Qt::Dense3Pattern},
                                           {"optimizer"},
                                           {"idle", Qt::BDiagPattern},
                                           {"bubble", Qt::DiagCrossPattern}}};
constexpr std::array kSeries{"parameters",          "activations", "master_parameters", "workspace",
                             "gathered_parameters", "gradients",   "fragmentation"};

/// Of WCAG 2: 0 of black, 1 of white.
double luminance(const QColor& colour) {
  const auto light = [](float channel) {
    const auto c = static_cast<double>(channel);
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * light(colour.redF()) + 0.7152 * light(colour.greenF()) +
         0.0722 * light(colour.blueF());
}

QPalette palette_of(const ReportStyle& style) {
  const QColor window = style.colour("tint"), base = style.colour("page");
  const QColor ink = style.colour("ink"), dim = style.colour("soft");
  QPalette p(ink, window, window.lighter(130), window.darker(150), dim, ink, Qt::white, base,
             window);
  p.setColor(QPalette::AlternateBase, window);
  p.setColor(QPalette::Highlight, style.colour("link"));  // the one accent
  p.setColor(QPalette::HighlightedText, base);
  p.setColor(QPalette::Link, style.colour("link"));
  p.setColor(QPalette::ToolTipBase, base);
  p.setColor(QPalette::ToolTipText, ink);
  p.setColor(QPalette::PlaceholderText, dim);
  for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, dim);
  return p;
}

}  // namespace

QBrush category_brush(int category) {
  const auto at = static_cast<Category>(category);
  return QBrush(style().fill(std::string(name_of(at)).c_str()), pattern_of(at));
}

QBrush time_brush(int activity) {
  const Part& part = kActivities[static_cast<std::size_t>(activity)];
  return QBrush(style().fill(part.name), part.pattern);
}

QBrush upper_bound_brush(const QPalette& palette) {
  return QBrush(palette.color(QPalette::PlaceholderText), Qt::Dense6Pattern);
}

QColor ink_on(const QColor& ground) {
  constexpr double kEven = 0.179;  // black and white stand out alike: √(1.05 · 0.05) − 0.05
  return luminance(ground) > kEven ? Qt::black : Qt::white;
}

QColor verdict_colour(Fit fit, const QPalette& palette) {
  const ReportStyle& style = ReportStyle::of(is_dark(palette));
  switch (fit) {
    case Fit::fits:
      return style.colour("fits");
    case Fit::tight:
      return style.colour("tight");
    case Fit::does_not_fit:
      return style.colour("no");
    case Fit::unknown:
      break;
  }
  return palette.color(QPalette::WindowText);
}

QColor grid_colour(const QPalette& palette) {
  return ReportStyle::of(is_dark(palette)).colour("line");
}

QColor series_colour(int series) {
  return style().fill(kSeries[static_cast<std::size_t>(series) % kSeries.size()]);
}

QColor chosen_colour() {
  return style().colour("no");
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
  return palette_of(ReportStyle::of(false));
}

QPalette dark_palette() {
  return palette_of(ReportStyle::of(true));
}

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::Window).lightness() < 128;
}

}  // namespace shardplan::gui
