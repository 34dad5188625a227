#include "models/documentation.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>

namespace shardplan::gui {

QString documentation() {
  const QDir here(QCoreApplication::applicationDirPath());
  for (const char* page :
       {"../share/doc/shardplan-doc/html/index.html", "../share/doc/shardplan-doc/docs/index.md",
        "../share/doc/shardplan-doc/index.md", "../../site/index.html", "../../../docs/index.md"}) {
    const QFileInfo file(here.filePath(QLatin1String(page)));
    if (file.isFile()) return file.canonicalFilePath();
  }
  return {};
}

}  // namespace shardplan::gui
