#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace shardplan {
namespace {

TEST(Printable, WritesOutWhatATerminalObeys) {
  EXPECT_EQ(printable("plain – text × 2"), "plain – text × 2");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("\x7f\xc2\x9b"), "\\x7f\\x9b");  // DEL; CSI in one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\u202eabc");  // right-to-left override
  EXPECT_EQ(printable_lines("a\n\tb\x07"), "a\n\tb\\x07");
}

TEST(Printable, WritesOutBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff"
                      "a\xc3"),
            "\\xffa\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a surrogate pair
}

TEST(Printable, IsCutByCharacters) {
  EXPECT_EQ(printable("×××", 3), "×××");
  EXPECT_EQ(printable("××××", 3), "×××...");
}

TEST(InAscii, SpellsWhatTheProgramWrites) {
  EXPECT_EQ(in_ascii("4 × A100 – “so”…"), "4 x A100 - \"so\"...");
  EXPECT_EQ(in_ascii("██▌|▏"), "###| ");
  EXPECT_EQ(in_ascii("漢\xff"), "??");
}

TEST(FirstCharacter, TakesAllOfUnicode) {
  EXPECT_EQ(first_character("é").code, U'é');
  EXPECT_EQ(first_character("漢").bytes, 3U);
  EXPECT_EQ(first_character("\xf0\x9f\x98\x80").code, 0x1F600U);
  EXPECT_EQ(first_character("\xf4\x90\x80\x80").bytes, 0U);  // past the last code
}

}  // namespace
}  // namespace shardplan
