// What people with another colour vision see: no two colours of a bar may look alike.
#include "views/colours.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QImage>
#include <QPainter>
#include <QStyleOption>
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "support/colour_vision.h"
#include "support/subprocess.h"
#include "views/window_style.h"

namespace shardplan::gui {
namespace {

std::uint32_t srgb(const QColor& colour) {
  return colour.rgb() & 0xffffffU;
}

/// CIE 1976; 2.3 is what a trained eye just tells apart side by side.
double difference(const QColor& a, const QColor& b, const Vision& vision) {
  const Triple p = lab_of(srgb(a), vision), q = lab_of(srgb(b), vision);
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

/// Under one theme of the windows after the other.
class InBothThemes {
 public:
  InBothThemes() : before_(QGuiApplication::palette()) {}
  ~InBothThemes() { QApplication::setPalette(before_); }
  InBothThemes(const InBothThemes&) = delete;
  InBothThemes& operator=(const InBothThemes&) = delete;

  void expect(const std::function<void(const QPalette&)>& check) const {
    for (const QPalette& palette : {light_palette(), dark_palette()}) {
      SCOPED_TRACE(is_dark(palette) ? "dark" : "light");
      QApplication::setPalette(palette);
      check(palette);
    }
  }

 private:
  const QPalette before_;
};

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
  InBothThemes().expect([](const QPalette&) {
    std::vector<QBrush> brushes;
    for (std::size_t c = 0; c < kCategoryCount; ++c)
      brushes.push_back(category_brush(static_cast<int>(c)));
    expect_apart(brushes, 16);
  });
}

TEST(Colours, OfTimeStayApartForEveryEye) {
  InBothThemes().expect([](const QPalette&) {
    std::vector<QBrush> brushes;
    for (int activity = 0; activity < 6; ++activity) brushes.push_back(time_brush(activity));
    expect_apart(brushes, 16);
  });
}

double contrast(const QColor& a, const QColor& b) {
  return shardplan::contrast(srgb(a), srgb(b));
}

TEST(Colours, OfWordsInABarAreReadableOnEveryPart) {
  InBothThemes().expect([](const QPalette&) {
    for (std::size_t c = 0; c < kCategoryCount; ++c) {
      const QColor ground = category_brush(static_cast<int>(c)).color();
      EXPECT_GE(contrast(ink_on(ground), ground), 4.5) << c;
    }
    for (int activity = 0; activity < 6; ++activity) {
      const QColor ground = time_brush(activity).color();
      EXPECT_GE(contrast(ink_on(ground), ground), 4.5) << activity;
    }
  });
}

TEST(Colours, OfWordsAreReadableOnBothGrounds) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    const QColor window = palette.color(QPalette::Window), base = palette.color(QPalette::Base);
    for (const QColor& ground : {window, base}) {
      EXPECT_GE(contrast(palette.color(QPalette::WindowText), ground), 7);
      EXPECT_GE(contrast(palette.color(QPalette::PlaceholderText), ground), 4.5);
      EXPECT_GE(contrast(palette.color(QPalette::Link), ground), 4.5);
      for (const Fit fit : {Fit::fits, Fit::tight, Fit::does_not_fit})
        EXPECT_GE(contrast(verdict_colour(fit, palette), ground), 4.5);
    }
    EXPECT_GE(
        contrast(palette.color(QPalette::HighlightedText), palette.color(QPalette::Highlight)),
        4.5);
  }
}

/// The largest contrast of a pixel of a box to tick with the ground around it.
double frame_contrast(const QPalette& palette, bool in_list) {
  QStyleOptionViewItem item;
  QStyleOptionButton button;
  QStyleOption& option = in_list ? static_cast<QStyleOption&>(item) : button;
  option.rect = QRect(4, 4, 14, 14);
  option.palette = palette;
  option.state = QStyle::State_Enabled | QStyle::State_Off;
  const QColor ground = palette.color(in_list ? QPalette::Base : QPalette::Window);
  QImage image(22, 22, QImage::Format_RGB32);
  image.fill(ground);
  QPainter painter(&image);
  WindowStyle().drawPrimitive(
      in_list ? QStyle::PE_IndicatorItemViewItemCheck : QStyle::PE_IndicatorCheckBox, &option,
      &painter, nullptr);
  painter.end();
  double most = 1;
  for (int x = 4; x < 18; ++x) most = std::max(most, contrast(image.pixelColor(x, 4), ground));
  return most;
}

TEST(Colours, OfBoxesThatAreNotTickedAreSeenInBothThemes) {
  constexpr double kSeen = 3;  // WCAG 2, 1.4.11: parts of controls
  for (const QPalette& palette : {light_palette(), dark_palette()})
    for (const bool in_list : {false, true}) EXPECT_GE(frame_contrast(palette, in_list), kSeen);
}

TEST(Colours, OfPlotsStayApartAndAreSeenOnBothGrounds) {
  InBothThemes().expect([](const QPalette& palette) {
    std::vector<QBrush> brushes;
    // Those after the first five have markers of their own too.
    for (int series = 0; series < 5; ++series) brushes.emplace_back(series_colour(series));
    expect_apart(brushes, 16);
    for (int series = 0; series < 6; ++series)
      EXPECT_GE(contrast(series_colour(series), palette.color(QPalette::Base)), 1.9) << series;
  });
}

TEST(Colours, AreTheReports) {
  const std::string css = text_of(SHARDPLAN_SOURCE_DIR "/data/report/style.css");
  InBothThemes().expect([&](const QPalette& palette) {
    std::vector<QColor> shown{palette.color(QPalette::Base), palette.color(QPalette::WindowText),
                              palette.color(QPalette::PlaceholderText), grid_colour(palette)};
    for (std::size_t c = 0; c < kCategoryCount; ++c)
      shown.push_back(category_brush(static_cast<int>(c)).color());
    for (const QColor& colour : shown) {
      const std::string name = colour == Qt::white ? "#fff" : colour.name().toStdString();
      EXPECT_NE(css.find(": " + name + ";"), std::string::npos) << name;
    }
  });
}

}  // namespace
}  // namespace shardplan::gui
