// Pictures without their page's style sheet: as a viewer without CSS variables has them.
#include "report/render/svg_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "report/render/render.h"
#include "report_testing.h"

namespace shardplan::report {
namespace {

using ::testing::HasSubstr;

TEST(SvgAttributes, AreWhatTheStyleSheetSaysOnALightPage) {
  EXPECT_EQ(svg_attributes("rect", "part c-parameters"),
            " fill=\"#1551a5\" stroke=\"#fff\" stroke-width=\"1\"");
  EXPECT_EQ(svg_attributes("rect", "part c-idle"),
            " fill=\"#a5a09b\" stroke=\"#fff\" stroke-width=\"1\"");
  EXPECT_EQ(svg_attributes("line", "limit"),
            " stroke=\"#1b2430\" stroke-width=\"1.2\" stroke-dasharray=\"5 3\"");
  EXPECT_THAT(svg_attributes("text", "note"), HasSubstr("fill=\"#566273\" font-size=\"12px\""));
  EXPECT_EQ(svg_attributes("rect", "unheard"), "");
}

TEST(SvgAttributes, AreOnEveryShapeOfAReport) {
  const std::string page = report_html(job_report(findings_of("gpt2-zero1.json")), Messages("en"));
  static const std::regex kShape("<(rect|line|path|circle|text) [^>]*>");
  int shapes = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), kShape), end; it != end; ++it, ++shapes) {
    const std::string shape = it->str();
    EXPECT_TRUE(shape.find(" fill=\"#") != shape.npos || shape.find(" stroke=\"#") != shape.npos)
        << shape;
    EXPECT_EQ(shape.find("var("), shape.npos) << shape;
  }
  EXPECT_GT(shapes, 50);
}

}  // namespace
}  // namespace shardplan::report
