#include "models/job_document.h"

#include <QUndoCommand>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/diagnostic.h"
#include "job/fields.h"
#include "models/job_difference.h"
#include "models/text.h"
#include "save/file.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;

/// A path of a job that lies in `from`, as a job in `to` would write it.
void move_path(Json& job, std::string_view pointer, const fs::path& from, const fs::path& to) {
  const auto value = field_of(job, pointer);
  if (!value || !value->is_string()) return;
  const fs::path path(value->get<std::string>());
  std::error_code error;
  if (path.is_absolute() || !fs::exists(from / path, error)) return;
  const fs::path moved = fs::relative(from / path, to, error);
  if (!error && !moved.empty()) set_field(job, pointer, moved.generic_string());
}

fs::path folder_of(const QString& path) {
  return path.isEmpty() ? fs::current_path()
                        : fs::absolute(fs::path(path.toStdString())).parent_path();
}

/// A job of a file in `from`, with relative paths that start in `to`.
Json moved(Json job, const fs::path& from, const fs::path& to) {
  if (from == to) return job;
  for (const auto* pointer : {"/framework/ds_config", "/model"}) move_path(job, pointer, from, to);
  return job;
}

/// What `shardplan fit` assumes where nothing is said, and new jobs say until somebody chooses.
constexpr std::string_view kDefault = "/checkpointing";

Json new_job() {
  return Json{{"schema", "shardplan.job/1"}, {"checkpointing", "full"}};
}

}  // namespace

struct JobDocument::State {
  Json json;
  QString path;
  bool assumes_defaults = false;
};

/// From one state to another. Steps of one gesture become one.
class JobDocument::Step : public QUndoCommand {
 public:
  Step(JobDocument& document, State before, State after, const QString& what, int gesture)
      : QUndoCommand(what),
        document_(document),
        before_(std::move(before)),
        after_(std::move(after)),
        opens_(before_.path != after_.path),
        gesture_(gesture) {}

  void undo() override { document_.enter(before_, opens_); }
  void redo() override { document_.enter(after_, opens_); }
  int id() const override { return gesture_; }
  bool mergeWith(const QUndoCommand* later) override {
    const auto& step = static_cast<const Step&>(*later);  // of the same id, so of the same document
    if (opens_ || step.opens_) return false;
    after_ = step.after_;
    setText(JobDifference::summary(differences(before_.json, after_.json)));
    setObsolete(before_.json == after_.json);
    return true;
  }

 private:
  JobDocument& document_;
  State before_, after_;
  bool opens_;
  int gesture_;
};

JobDocument::JobDocument(QObject* parent)
    : QObject(parent), json_(std::make_unique<Json>(new_job())) {
  constexpr int kMostSteps = 1000;
  undo_stack_.setUndoLimit(kMostSteps);
}

JobDocument::~JobDocument() = default;

std::string JobDocument::name() const {
  return path_.isEmpty() ? "job" : path_.toStdString();
}

std::string JobDocument::directory() const {
  return path_.isEmpty() ? "" : fs::path(path_.toStdString()).parent_path().string();
}

const Json& JobDocument::in_file() const {
  static const Json kNew = new_job();
  const auto it = in_files_.find(path_);
  return it == in_files_.end() ? kNew : it->second;
}

bool JobDocument::is_modified() const {
  return !differences(*json_, in_file()).empty();
}

JobDocument::State JobDocument::state() const {
  return {*json_, path_, assumes_defaults_};
}

void JobDocument::push(State after, const QString& what) {
  undo_stack_.push(new Step(*this, state(), std::move(after), what, gesture_));
}

bool JobDocument::assumes(std::string_view pointer) const {
  return pointer == kDefault && assumes_defaults_ &&
         field_of(*json_, kDefault) == field_of(new_job(), kDefault);
}

void JobDocument::enter(const State& state, bool with_path) {
  if (with_path) path_ = state.path;
  *json_ = moved(state.json, folder_of(state.path), folder_of(path_));
  assumes_defaults_ = state.assumes_defaults;
  Q_EMIT changed();
}

void JobDocument::begin_gesture() {
  if (gesture_ == kNoGesture) gesture_ = gestures_++;
}

void JobDocument::set(std::string_view pointer, const Json& value) {
  const auto now = field_of(*json_, pointer);
  if (now ? *now == value : value.is_null()) {
    if (!assumes(pointer)) return;
    return push({*json_, path_, false}, text(pointer.substr(1)));  // chosen, as it is
  }
  Json job = *json_;
  set_field(job, pointer, value);
  replace(std::move(job));
}

void JobDocument::replace(Json json) {
  const auto found = differences(*json_, json);
  if (found.empty()) {
    Q_EMIT changed();
  } else {
    const bool chosen = std::any_of(found.begin(), found.end(),
                                    [](const FieldDifference& d) { return d.pointer == kDefault; });
    push({std::move(json), path_, assumes_defaults_ && !chosen}, JobDifference::summary(found));
  }
}

void JobDocument::start_new() {
  if (path_.isEmpty() && *json_ == new_job() && assumes_defaults_) return;
  push({new_job(), {}, true}, tr("new job"));
}

void JobDocument::open(const QString& path) {
  Json json = read_json_file(path.toStdString());
  if (!json.is_object())
    throw InputError({.file = path.toStdString(),
                      .message = "not a job",
                      .expected = "an object with \"model\" and \"cluster\""});
  in_files_[path] = json;
  if (json == *json_ && path == path_) return replace(std::move(json));  // told, but no step
  push({std::move(json), path, false}, text(fs::path(path.toStdString()).filename().string()));
}

void JobDocument::save(const QString& path) {
  Json json = moved(*json_, folder_of(path_), folder_of(path));
  write_file(path.toStdString(), json.dump(2) + "\n");
  in_files_[path] = json;
  *json_ = std::move(json);
  path_ = path;
  assumes_defaults_ = false;
  Q_EMIT changed();
  Q_EMIT saved();
}

void JobDocument::revert() {
  replace(Json(in_file()));
}

void JobDocument::resume(const Json& json, const QString& path, bool assumes_defaults) {
  undo_stack_.clear();
  assumes_defaults_ = assumes_defaults;
  *json_ = json;
  path_ = path;
  try {
    if (!path.isEmpty()) in_files_[path] = read_json_file(path.toStdString());
  } catch (const InputError&) {  // gone, or not to be read: the job is all that there is
    in_files_[path] = Json();
  }
  Q_EMIT changed();
}

}  // namespace shardplan::gui
