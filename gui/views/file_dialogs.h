// Where a file is to be opened or saved: dialogs that begin in the folder that was used last, add
// the suffix that a name lacks, and ask before a file is overwritten.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QStringList>
#include <vector>

class QWidget;

namespace shardplan::gui {

struct FileFormat {
  QString name;    ///< "Web pages"
  QString suffix;  ///< "html"
};

class FileDialogs {
  Q_DECLARE_TR_FUNCTIONS(FileDialogs)

 public:
  // Each gives the path, or "" when the person would rather not.
  /// `suggested`: a file's name, or its path.
  static QString where_to_save(QWidget* parent, const QString& title, const QString& suggested,
                               const std::vector<FileFormat>& formats);
  static QString what_to_open(QWidget* parent, const QString& title);
  /// Several at once.
  static QStringList which_to_open(QWidget* parent, const QString& title);
  static QString folder(QWidget* parent, const QString& title);
};

}  // namespace shardplan::gui
