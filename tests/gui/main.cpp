// The tests of Qt's models, which need no window, and of plots, which need letters to measure.
#include <QGuiApplication>

#include "main_testing.h"

int main(int argc, char** argv) {
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  return shardplan::gui::run_tests<QGuiApplication>(argc, argv);
}
