#include "models/recent_files.h"

#include <QFileInfo>
#include <QSettings>

namespace shardplan::gui {
namespace {

constexpr qsizetype kMost = 10;

QString key() {
  return QStringLiteral("recent_files");
}

}  // namespace

QStringList recent_files() {
  QStringList out;
  for (const QString& path : QSettings().value(key()).toStringList())
    if (QFileInfo::exists(path)) out.push_back(path);
  return out;
}

void remember_file(const QString& path) {
  const QString whole = QFileInfo(path).absoluteFilePath();
  QStringList files = recent_files();
  files.removeAll(whole);
  files.prepend(whole);
  QSettings().setValue(key(), QStringList(files.mid(0, kMost)));
}

}  // namespace shardplan::gui
