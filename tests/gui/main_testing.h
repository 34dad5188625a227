// GoogleTest with an application object, and settings of its own.
#pragma once

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QSettings>
#include <QTemporaryDir>

namespace shardplan::gui {

/// All tests, with an application of type `Made` around them.
template <typename Made>
int run_tests(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const Made application(argc, argv);
  QCoreApplication::setApplicationName(QStringLiteral("shardplan"));
  QCoreApplication::setOrganizationName(QStringLiteral("shardplan-test"));
  const QTemporaryDir settings;
  qputenv("XDG_DATA_HOME", settings.path().toLocal8Bit());  // records of a person stay out of it
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  return RUN_ALL_TESTS();
}

}  // namespace shardplan::gui
