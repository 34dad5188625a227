// The measurement records that a person has beside the built-in ones: files of their own folder,
// which stay there from one start to the next.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <vector>

#include "base/diagnostic.h"
#include "json/document.h"
#include "load/record.h"

namespace shardplan::gui {

class RecordLibrary : public QObject {
  Q_OBJECT

 public:
  /// `folder`: "": the application's own, made when the first record comes.
  explicit RecordLibrary(QString folder = {}, QObject* parent = nullptr);

  struct Added {
    std::int64_t records = 0;
    std::vector<Diagnostic> bad;  ///< of records that could not be read; the others are there
  };
  /// Copies the files of records that can be read. A record of the same name in another file is
  /// another record.
  Added add(const QStringList& paths, const HardwareCatalog& hardware);
  /// Keeps a record that was just made. Throws InputError when it cannot be written.
  void keep(const Json& record);
  /// Takes the file away that a record is in; false for one that is not of this folder.
  bool remove(const QString& file);
  bool owns(const QString& file) const;

  /// The built-in records, then those of the folder.
  RecordList all(const HardwareCatalog& hardware) const;
  const QString& folder() const { return folder_; }

 Q_SIGNALS:
  void changed();

 private:
  QString free_name(const QString& wanted) const;

  QString folder_;
};

/// Whether a document is one record or a list of them.
bool is_record(const Json& document);

/// The job of the record called `name` in `file`, as it is written there: a built-in file, or one
/// on disk. Null where it is gone.
Json job_of_record(const std::string& name, const std::string& file);

}  // namespace shardplan::gui
