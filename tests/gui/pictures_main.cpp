// The tests of pictures: without a display, whose letters are the same on every machine that has
// the same fonts.
#include <QApplication>

#include "main_testing.h"

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  qputenv("QT_FONT_DPI", "96");
  qputenv("LC_ALL", "C.UTF-8");  // in Japanese, fontconfig's fixed-width letters are other ones
  for (const char* scale : {"QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_STYLE_OVERRIDE"})
    qunsetenv(scale);
  return shardplan::gui::run_tests<QApplication>(argc, argv);
}
