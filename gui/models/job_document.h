// The job that is being edited: its text, the file it belongs to, whether it was saved, and every
// change to it, which can be undone.
#pragma once

#include <QObject>
#include <QString>
#include <QUndoStack>
#include <map>
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
  /// Whether the job says anything else than its file; one without a file, than a new job.
  bool is_modified() const;
  /// Whether a field has what new jobs begin with, and nobody has chosen it since, nor saved it.
  bool assumes(std::string_view pointer) const;
  /// How messages call it: its path, or "job".
  std::string name() const;
  /// Where its relative paths start.
  std::string directory() const;

  /// Sets a field (job/fields.h); null takes it away. Nothing happens when it is there already.
  void set(std::string_view pointer, const Json& value);
  /// Several fields at once, in one change: an object's text in place of the job's. Told even when
  /// it is the same, as a file that it names may be another.
  void replace(Json json);

  /// Every change, another job in its place included, as a step that can be undone. Steps keep the
  /// file that the job belongs to, unless they opened another.
  QUndoStack& undo_stack() { return undo_stack_; }
  /// Changes until end_gesture() are one step: a name that is typed, a slider that is dragged.
  void begin_gesture();
  void end_gesture() { gesture_ = kNoGesture; }

  /// An empty job: what `shardplan fit` takes for granted, docs/reference/job.md.
  void start_new();
  /// Reads a job file; throws InputError and keeps the job as it was.
  void open(const QString& path);
  /// Writes the job; throws InputError when the file cannot be written. Files that the job names
  /// by relative paths are named from the new place.
  void save(const QString& path);
  /// Back to what the file says, in a step.
  void revert();
  /// A job as it was left, and the file that it belongs to; it begins with nothing to undo.
  void resume(const Json& json, const QString& path, bool assumes_defaults);

 Q_SIGNALS:
  void changed();
  void saved();

 private:
  class Step;
  struct State;
  static constexpr int kNoGesture = -1;

  State state() const;
  void push(State after, const QString& what);
  void enter(const State& state, bool with_path);
  const Json& in_file() const;

  std::unique_ptr<Json> json_;
  QString path_;
  bool assumes_defaults_ = true;      ///< of kDefault
  std::map<QString, Json> in_files_;  ///< what each file said when it was last read or written
  QUndoStack undo_stack_;
  int gesture_ = kNoGesture, gestures_ = 0;
};

}  // namespace shardplan::gui
