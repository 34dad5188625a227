// Lines of a text break between words, and not before a unit.
#include "models/line_breaks.h"

#include <gtest/gtest.h>

namespace shardplan::gui {
namespace {

TEST(LineBreaks, AreNotBetweenANumberAndItsUnit) {
  const QString text =
      QStringLiteral("4 Bits, 0 B, 1.5 GiB; 40 %\n3 s of 2,063 tokens/s and 7 GPUs");
  QString laid_out = with_line_breaks(text);
  EXPECT_EQ(laid_out.size(), text.size());
  EXPECT_EQ(laid_out.replace(QChar(QChar::Nbsp), QLatin1Char('_'))
                .replace(QChar(QChar::LineSeparator), QLatin1Char('|')),
            QStringLiteral("4 Bits, 0_B, 1.5_GiB; 40_%|3_s of 2,063_tokens/s and 7 GPUs"));
}

}  // namespace
}  // namespace shardplan::gui
