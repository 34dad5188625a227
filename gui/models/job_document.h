// The job that is being edited: its text, the file it belongs to, and whether it was saved.
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <string>
#include <string_view>

#include "json/document.h"

namespace shardplan::gui {

class JobDocument : public QObject {
  Q_OBJECT

 public:
  explicit JobDocument(QObject* parent = nullptr);
  ~JobDocument() override;

  const Json& json() const { return *json_; }
  const QString& path() const { return path_; }  ///< "" before it was saved
  bool is_modified() const { return modified_; }
  /// How messages call it: its path, or "job".
  std::string name() const;
  /// Where its relative paths start.
  std::string directory() const;

  /// Sets a field (job/fields.h); null takes it away. Nothing happens when it is there already.
  void set(std::string_view pointer, const Json& value);
  /// Several fields at once, in one change: an object's text in place of the job's. Told even when
  /// it is the same, as a file that it names may be another.
  void replace(Json json);

  /// An empty job: what `shardplan fit` takes for granted, docs/reference/job.md.
  void start_new();
  /// Reads a job file; throws InputError and keeps the job as it was.
  void open(const QString& path);
  /// Writes the job; throws InputError when the file cannot be written. Files that the job names
  /// by relative paths are named from the new place.
  void save(const QString& path);

 Q_SIGNALS:
  void changed();
  void saved();

 private:
  std::unique_ptr<Json> json_;
  QString path_;
  bool modified_ = false;
};

}  // namespace shardplan::gui
