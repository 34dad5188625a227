// The tests of windows.
#include <QApplication>

#include "main_testing.h"

int main(int argc, char** argv) {
  return shardplan::gui::run_tests<QApplication>(argc, argv);
}
