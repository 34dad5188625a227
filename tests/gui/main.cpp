// GoogleTest with what Qt's models need: an application object, and settings of their own.
#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QSettings>
#include <QTemporaryDir>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  QCoreApplication application(argc, argv);
  QCoreApplication::setApplicationName(QStringLiteral("shardplan"));
  QCoreApplication::setOrganizationName(QStringLiteral("shardplan-test"));
  const QTemporaryDir settings;
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  return RUN_ALL_TESTS();
}
