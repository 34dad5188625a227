// What the comparison of pictures sees, and what it lets pass.
#include "gui/picture_difference.h"

#include <gtest/gtest.h>

#include <QPainter>
#include <random>

#include "views/colours.h"

namespace shardplan::gui {
namespace {

struct Sketch {
  QPoint button{300, 120};
  QColor accent{0, 114, 178};
  QString label = QStringLiteral("GPU memory");
  QString figure = QStringLiteral("38.2 GiB of 39.4 GiB");
  QPointF letters{40, 80};  ///< where the label begins
};

/// A window with a bar, a label, a figure and a button, as pages have them.
QImage draw(const Sketch& d, const QPalette& palette) {
  QImage image(600, 300, QImage::Format_RGB32);
  image.fill(palette.color(QPalette::Window));
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(QFont(QStringLiteral("DejaVu Sans"), 9));
  painter.fillRect(QRect(40, 20, 400, 30), d.accent);
  painter.setPen(palette.color(QPalette::PlaceholderText));
  painter.drawText(d.letters, d.label);
  painter.setPen(palette.color(QPalette::WindowText));
  painter.drawText(QPointF(200, 80), d.figure);
  painter.setBrush(palette.color(QPalette::Button));
  painter.drawRoundedRect(QRect(d.button, QSize(90, 24)), 3, 3);
  painter.drawText(QRect(d.button, QSize(90, 24)), Qt::AlignCenter, QStringLiteral("Apply"));
  return image;
}

class PictureDifferences : public testing::TestWithParam<bool> {
 protected:
  PictureDifference from_usual(const Sketch& other) const {
    return difference_of(reduced(draw({}, palette_)), reduced(draw(other, palette_)));
  }
  QPalette palette_ = GetParam() ? dark_palette() : light_palette();
};

TEST_P(PictureDifferences, AreNoneBetweenTheSame) {
  EXPECT_EQ(from_usual({}).differing, 0);
}

TEST_P(PictureDifferences, AreNotSeenInNoise) {
  QImage noisy = draw({}, palette_);
  std::mt19937 random(7);
  std::uniform_int_distribution<int> by(-12, 12);
  const auto near = [&](int value) { return std::clamp(value + by(random), 0, 255); };
  for (int y = 0; y < noisy.height(); ++y)
    for (int x = 0; x < noisy.width(); ++x) {
      const QRgb c = noisy.pixel(x, y);
      noisy.setPixel(x, y, qRgb(near(qRed(c)), near(qGreen(c)), near(qBlue(c))));
    }
  EXPECT_FALSE(difference_of(reduced(draw({}, palette_)), reduced(noisy)).is_seen());
}

TEST_P(PictureDifferences, AreNotSeenInLettersHalfAPixelAside) {
  EXPECT_FALSE(from_usual({.letters = {40.5, 80}}).is_seen());
  EXPECT_FALSE(from_usual({.letters = {41, 80}}).is_seen());
}

TEST_P(PictureDifferences, AreNotSeenInAnotherLastDigit) {
  EXPECT_FALSE(from_usual({.figure = QStringLiteral("38.3 GiB of 39.4 GiB")}).is_seen());
}

TEST_P(PictureDifferences, AreSeenInAMovedButton) {
  EXPECT_TRUE(from_usual({.button = {312, 120}}).is_seen());
  EXPECT_TRUE(from_usual({.button = {300, 126}}).is_seen());
}

TEST_P(PictureDifferences, AreSeenInAnotherColour) {
  EXPECT_TRUE(from_usual({.accent = {0, 158, 115}}).is_seen());
  EXPECT_TRUE(from_usual({.accent = {0, 90, 178}}).is_seen());
}

TEST_P(PictureDifferences, AreSeenWhereALabelIsGoneOrAnother) {
  EXPECT_TRUE(from_usual({.label = QString()}).is_seen());
  EXPECT_TRUE(from_usual({.label = QStringLiteral("GPU")}).is_seen());
}

TEST_P(PictureDifferences, AreSeenInAnotherSize) {
  const QImage usual = reduced(draw({}, palette_));
  EXPECT_TRUE(difference_of(usual, usual.copy(0, 0, 100, 100)).is_seen());
  EXPECT_TRUE(difference_of(QImage(), usual).is_seen());
}

TEST_P(PictureDifferences, AreMarkedWhereTheyAre) {
  const QImage map = from_usual({.label = QString()}).map;
  EXPECT_EQ(map.pixel(20, 25), qRgb(220, 0, 0));   // within the label
  EXPECT_NE(map.pixel(120, 45), qRgb(220, 0, 0));  // within the button
}

INSTANTIATE_TEST_SUITE_P(Themes, PictureDifferences, testing::Bool());

}  // namespace
}  // namespace shardplan::gui
