// The colours of a page, on the screen and on paper, to every kind of eye.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "embedded/files.h"
#include "report/render/render.h"
#include "report_testing.h"
#include "support/colour_vision.h"

namespace shardplan::report {
namespace {

using Palette = std::map<std::string, std::uint32_t>;

/// Apart enough to find a colour of a bar in its legend; side by side much less can be seen.
constexpr double kApart = 10;

const std::string& style() {
  static const std::string css(embedded_file("report/style.css"));
  return css;
}

/// The custom properties of the first :root block from `begin` on.
Palette colours_from(std::size_t begin) {
  Palette palette;
  const std::size_t open = style().find(":root", begin);
  const std::string block = style().substr(open, style().find('}', open) - open);
  static const std::regex kColour("--([a-z_]+): #([0-9a-f]{6}|[0-9a-f]{3});");
  for (std::sregex_iterator it(block.begin(), block.end(), kColour), end; it != end; ++it) {
    std::string hex = (*it)[2];
    if (hex.size() == 3) hex = {hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]};
    palette[(*it)[1]] = static_cast<std::uint32_t>(std::stoul(hex, nullptr, 16));
  }
  return palette;
}

Palette light() {
  return colours_from(0);
}

Palette dark() {
  Palette palette = light();
  for (const auto& [name, colour] : colours_from(style().find("(prefers-color-scheme: dark)")))
    palette[name] = colour;
  return palette;
}

std::vector<std::string> categories() {
  return {kCategoryNames.begin(), kCategoryNames.end()};
}

void expect_apart(const Palette& palette, const std::vector<std::string>& names) {
  for (const Vision& vision : kVisions)
    for (std::size_t a = 0; a < names.size(); ++a)
      for (std::size_t b = a + 1; b < names.size(); ++b)
        EXPECT_GE(
            difference(lab_of(palette.at(names[a]), vision), lab_of(palette.at(names[b]), vision)),
            kApart)
            << vision.name << ": " << names[a] << " and " << names[b];
}

TEST(Colours, OfTheSimulationAreTheKnownOnes) {
  // Pairs of the test data of Sharma, Wu and Dalal, Color Research and Application 30(1), 2005.
  EXPECT_NEAR(difference({50, 2.6772, -79.7751}, {50, 0, -82.7485}), 2.0425, 1e-4);
  EXPECT_NEAR(difference({50, 2.5, 0}, {50, 0, -2.5}), 4.3065, 1e-4);
  EXPECT_NEAR(difference({50, 2.5, 0}, {73, 25, -18}), 27.1492, 1e-4);
  EXPECT_NEAR(difference({60.2574, -34.0099, 36.2677}, {60.4626, -34.1751, 39.4387}), 1.2644, 1e-4);
  EXPECT_NEAR(difference({22.7233, 20.0904, -46.6940}, {23.0331, 14.9730, -42.5619}), 2.0373, 1e-4);
  EXPECT_NEAR(difference({2.0776, 0.0795, -1.1350}, {0.9033, -0.0636, -0.5514}), 0.9082, 1e-4);
  EXPECT_NEAR(contrast(0xffffff, 0x000000), 21, 1e-6);
  // A red and a green that only those with all cones tell apart well.
  const auto apart = [](const Vision& v) {
    return difference(lab_of(0xc04020, v), lab_of(0x607010, v));
  };
  EXPECT_GT(apart(kVisions[0]), 40);
  EXPECT_LT(apart(kVisions[2]), 16);
}

TEST(Colours, OfMemoryStayApartForEveryEye) {
  expect_apart(light(), categories());
  expect_apart(dark(), categories());
}

TEST(Colours, OfTimeAreSomeOfThose) {
  static const std::regex kClass(
      R"(\.c-(compute|communication|copies|optimizer|bubble|idle) \{ --fill: var\(--([a-z_]+)\); \})");
  const std::vector<std::string> known = categories();
  std::set<std::string> taken;
  for (std::sregex_iterator it(style().begin(), style().end(), kClass), end; it != end; ++it) {
    EXPECT_TRUE(taken.insert((*it)[2]).second) << (*it)[1];
    EXPECT_NE(std::find(known.begin(), known.end(), (*it)[2]), known.end()) << (*it)[1];
  }
  EXPECT_EQ(taken.size(), 6U);
}

TEST(Colours, StandOutFromThePage) {
  for (const Palette& palette : {light(), dark()})
    for (const std::string& name : categories())
      for (const Vision& vision : kVisions)
        EXPECT_GE(difference(lab_of(palette.at(name), vision), lab_of(palette.at("page"), vision)),
                  kApart)
            << vision.name << ": " << name;
}

TEST(Colours, OfWordsCanBeRead) {
  for (const Palette& palette : {light(), dark()})
    for (const char* words : {"ink", "soft", "link", "fits", "tight", "no"})
      for (const char* ground : {"page", "tint", "here"})
        EXPECT_GE(contrast(palette.at(words), palette.at(ground)), 4.5)
            << words << " on " << ground;
}

TEST(Colours, OfPaperAreTheLightOnes) {
  // The dark ones are for screens, so that a printer never fills a page with ink.
  EXPECT_NE(style().find("@media screen and (prefers-color-scheme: dark)"), std::string::npos);
  for (const std::string& name : categories())
    EXPECT_NE(style().find(".c-" + name + " { --fill: var(--" + name + "); }"), std::string::npos);
}

/// On screens; paper and drawings have sizes of their own.
TEST(Type, HasTheSizesOfTheSheetAlone) {
  std::string screen = style().substr(0, style().find("@media print"));
  screen = std::regex_replace(screen, std::regex(R"((svg|\.wide) [^{]*\{[^}]*\})"), "");
  static const std::regex kSize("font-size: ([^;}]+)");
  std::set<std::string> sizes;
  for (std::sregex_iterator it(screen.begin(), screen.end(), kSize), end; it != end; ++it)
    sizes.insert((*it)[1]);
  EXPECT_THAT(sizes, ::testing::IsSubsetOf({"var(--small)", "var(--text)", "var(--large)",
                                            "var(--title)", "inherit"}));
}

TEST(Colours, OfNoWordsAreThePaleOnes) {
  // --faint is for lines: nothing that is read has it.
  EXPECT_EQ(style().find(" color: var(--faint)"), std::string::npos);
}

}  // namespace
}  // namespace shardplan::report
