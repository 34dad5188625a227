// What a plot shows and where: scales, round ticks, names that cover nothing, the front, and SVG.
#include "models/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFont>
#include <QXmlStreamReader>
#include <cmath>

#include "models/plot/labels.h"

namespace shardplan::gui {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

QStringList texts_of(const std::vector<Tick>& ticks) {
  QStringList out;
  for (const Tick& t : ticks) out.push_back(t.text);
  return out;
}

TEST(PlotAxis, IsLogarithmicWhereValuesSpanDecades) {
  EXPECT_TRUE(PlotAxis(PlotUnit::number, PlotScale::automatic, {1, 500}).is_logarithmic());
  EXPECT_FALSE(PlotAxis(PlotUnit::number, PlotScale::automatic, {1, 5}).is_logarithmic());
  EXPECT_FALSE(PlotAxis(PlotUnit::number, PlotScale::automatic, {0, 500}).is_logarithmic());
  EXPECT_FALSE(PlotAxis(PlotUnit::number, PlotScale::linear, {1, 500}).is_logarithmic());
  EXPECT_TRUE(PlotAxis(PlotUnit::number, PlotScale::logarithmic, {1, 5}).is_logarithmic());
  EXPECT_FALSE(PlotAxis(PlotUnit::number, PlotScale::logarithmic, {-1, 5}).is_logarithmic());
}

TEST(PlotAxis, HasRoundTicksWithinWhatItShows) {
  const PlotAxis bytes(PlotUnit::bytes, PlotScale::linear, {3 * kGibibyte, 39 * kGibibyte});
  EXPECT_EQ(texts_of(bytes.ticks(6)).join(QLatin1Char(' ')),
            QStringLiteral("0 8 GiB 16 GiB 24 GiB 32 GiB 40 GiB"));
  const PlotAxis many(PlotUnit::bytes, PlotScale::automatic, {0.3 * kGibibyte, 70 * kGibibyte});
  for (const Tick& tick : many.ticks(6)) {
    const double power = std::log2(tick.value);
    EXPECT_EQ(power, std::floor(power)) << tick.text.toStdString();
  }
  const PlotAxis time(PlotUnit::seconds, PlotScale::automatic, {0.06, 3});
  const QStringList times = texts_of(time.ticks(7));
  EXPECT_TRUE(times.contains(QStringLiteral("100 ms")));
  EXPECT_TRUE(times.contains(QStringLiteral("1 s")));
  for (const PlotAxis& axis : {bytes, many, time})
    for (const Tick& tick : axis.ticks(5)) {
      EXPECT_GE(axis.place(tick.value), -1e-9);
      EXPECT_LE(axis.place(tick.value), 1 + 1e-9);
    }
}

TEST(PlotAxis, NeverHasMoreTicksThanAskedForNorTooFewToRead) {
  for (const double low : {0.001, 1.0, 37.0, 1e6})
    for (const double factor : {1.0, 1.02, 1.5, 3.0, 12.0, 1e3, 1e7})
      for (const PlotUnit unit : {PlotUnit::bytes, PlotUnit::seconds, PlotUnit::money}) {
        if (unit == PlotUnit::bytes && low < 1e6) continue;  // parts of a byte are none
        const PlotAxis axis(unit, PlotScale::automatic, {low, low * factor});
        const auto ticks = axis.ticks(6);
        EXPECT_LE(ticks.size(), 6U) << low << " x " << factor;
        EXPECT_GE(ticks.size(), 1U) << low << " x " << factor;
        for (std::size_t i = 1; i < ticks.size(); ++i) EXPECT_NE(ticks[i].text, ticks[i - 1].text);
      }
}

TEST(PlotAxis, OfCountsHasWholeNumbers) {
  const PlotAxis axis(PlotUnit::count, PlotScale::linear, {1, 3});
  for (const Tick& tick : axis.ticks(7)) EXPECT_EQ(tick.value, std::floor(tick.value));
}

TEST(PlotLabels, CoverNeitherEachOtherNorPoints) {
  std::vector<LabelWish> wishes;
  std::vector<QPointF> points;
  for (int i = 0; i < 40; ++i) {
    const QPointF at(20 + 23 * (i % 9), 20 + 17 * (i / 9));
    points.push_back(at);
    wishes.push_back({at, {60, 14}});
  }
  const QRectF area(0, 0, 300, 160);
  const auto places = place_labels(wishes, area, points, 4);
  int placed = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    ++placed;
    EXPECT_TRUE(area.contains(*places[i]));
    for (std::size_t j = i + 1; j < places.size(); ++j)
      EXPECT_FALSE(places[j] && places[j]->intersects(*places[i])) << i << ", " << j;
    for (const QPointF& p : points) EXPECT_FALSE(places[i]->contains(p));
  }
  EXPECT_GE(placed, 3);
}

PlotData plans() {
  PlotData data;
  data.x = {QStringLiteral("memory"), PlotUnit::bytes};
  data.y = {QStringLiteral("tokens <per> second"), PlotUnit::number};
  data.series.push_back({QStringLiteral("plans"), Qt::blue});
  const double values[][2] = {{8, 100}, {16, 300}, {12, 50}, {32, 900}, {24, 200}};
  for (const auto& [gib, speed] : values)
    data.points.push_back({gib * kGibibyte, speed, QStringLiteral("%1 & more").arg(gib), {}, 0});
  data.lines.push_back({front_of(data.points, true, false), {}, true});
  data.limits.push_back({true, 40 * kGibibyte, QStringLiteral("usable")});
  data.has_names = true;
  return data;
}

TEST(Plot, FrontHasThePointsThatNothingBeats) {
  EXPECT_THAT(plans().lines.front().points, testing::ElementsAre(0, 1, 3));
  EXPECT_THAT(front_of(plans().points, true, true), testing::ElementsAre(0, 2));
  EXPECT_THAT(front_of(plans().points, false, false), testing::ElementsAre(3));
  EXPECT_THAT(front_of({}, true, true), testing::IsEmpty());
}

TEST(Plot, FindsThePointThatIsMeantAndShowsTheLimit) {
  const PlotData data = plans();
  const PlotLayout layout(data, QSizeF(600, 300), QFont());
  for (int i = 0; i < 5; ++i) {
    const PlotPoint& p = data.points[static_cast<std::size_t>(i)];
    EXPECT_TRUE(layout.area().contains(layout.place_of(p.x, p.y))) << i;
    EXPECT_EQ(layout.point_at(layout.place_of(p.x, p.y) + QPointF(3, 3)), i);
  }
  EXPECT_EQ(layout.point_at(QPointF(0, 0)), -1);
  EXPECT_LE(layout.x().place(40 * kGibibyte), 1);
}

TEST(Plot, OfManySizesKeepsAllWordsInsideAndApart) {
  const PlotData data = plans();
  for (const QSizeF& size : {QSizeF(240, 140), QSizeF(420, 260), QSizeF(900, 500)}) {
    const Drawing drawing =
        PlotLayout(data, size, QFont())
            .draw({Qt::white, Qt::white, Qt::black, Qt::gray, Qt::lightGray, Qt::red, Qt::blue},
                  {1, 0});
    std::vector<QRectF> words;
    for (const Shape& shape : drawing.shapes)
      if (const auto* text = std::get_if<TextShape>(&shape); text && !text->upwards) {
        EXPECT_TRUE(QRectF(QPointF(), size).adjusted(-1, -1, 1, 1).contains(text->area))
            << text->text.toStdString() << " at " << size.width();
        if (text->place != TextPlace::right) words.push_back(text->area);
      }
    for (std::size_t i = 0; i < words.size(); ++i)
      for (std::size_t j = i + 1; j < words.size(); ++j)
        EXPECT_LT(words[i].intersected(words[j]).width(), 3) << size.width();
  }
}

/// Among so many points the chosen one's name finds no free place, and is there all the same.
TEST(Plot, KeepsOtherNamesOffTheChosenOnes) {
  PlotData data;
  data.x = data.y = {QStringLiteral("gib"), PlotUnit::number, PlotScale::linear};
  data.series.push_back({QStringLiteral("plans"), Qt::blue});
  for (int x = 0; x < 24; ++x)
    for (int y = 0; y < 10; ++y)
      data.points.push_back(
          {200.0 + x, 100.0 - y, QStringLiteral("micro-batch %1 of many").arg(x), {}, 0});
  for (const double y : {100.0, 99.0, 98.0, 97.0})
    data.points.push_back({160.0, y, QStringLiteral("a name that is about as long"), {}, 0});
  PlotLine front;
  for (int i = 0; i < static_cast<int>(data.points.size()); ++i) front.points.push_back(i);
  data.lines.push_back(front);
  data.has_names = true;
  for (const int selected : {0, 45, 230}) {
    const Drawing drawing =
        PlotLayout(data, QSizeF(700, 260), QFont())
            .draw({Qt::white, Qt::white, Qt::black, Qt::gray, Qt::lightGray, Qt::red, Qt::blue},
                  {selected, -1});
    std::vector<QRectF> names;
    for (const Shape& shape : drawing.shapes)
      if (const auto* text = std::get_if<TextShape>(&shape); text && text->place == TextPlace::left)
        names.push_back(text->area);
    ASSERT_FALSE(names.empty());
    for (std::size_t i = 0; i < names.size(); ++i)
      for (std::size_t j = i + 1; j < names.size(); ++j)
        EXPECT_FALSE(names[i].intersects(names[j])) << selected;
  }
}

TEST(Plot, BecomesAWellFormedSvgWithEveryPointAndName) {
  const PlotData data = plans();
  const Drawing drawing =
      PlotLayout(data, QSizeF(700, 400), QFont())
          .draw({Qt::white, Qt::white, Qt::black, Qt::gray, Qt::lightGray, Qt::red, Qt::blue}, {});
  QXmlStreamReader svg(svg_of(drawing, QFont(), QStringLiteral("a < b")));
  int circles = 0;
  QStringList texts;
  while (!svg.atEnd()) {
    if (svg.readNext() != QXmlStreamReader::StartElement) continue;
    if (svg.name() == QStringLiteral("circle")) ++circles;
    if (svg.name() == QStringLiteral("text")) texts.push_back(svg.readElementText());
  }
  EXPECT_FALSE(svg.hasError()) << svg.errorString().toStdString();
  EXPECT_EQ(circles, 5 + 1);  // and the legend's
  EXPECT_TRUE(texts.contains(QStringLiteral("tokens <per> second")));
  EXPECT_TRUE(texts.contains(QStringLiteral("32 & more")));
  EXPECT_TRUE(texts.contains(QStringLiteral("usable")));
}

}  // namespace
}  // namespace shardplan::gui
