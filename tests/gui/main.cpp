// The tests of Qt's models, which need no window.
#include "main_testing.h"

int main(int argc, char** argv) {
  return shardplan::gui::run_tests<QCoreApplication>(argc, argv);
}
