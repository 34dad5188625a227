#include "models/job_document.h"

#include <QSaveFile>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "job/fields.h"

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
  return fs::absolute(fs::path(path.toStdString())).parent_path();
}

}  // namespace

JobDocument::JobDocument(QObject* parent) : QObject(parent), json_(std::make_unique<Json>()) {
  start_new();
}

JobDocument::~JobDocument() = default;

std::string JobDocument::name() const {
  return path_.isEmpty() ? "job" : path_.toStdString();
}

std::string JobDocument::directory() const {
  return path_.isEmpty() ? "" : fs::path(path_.toStdString()).parent_path().string();
}

void JobDocument::set(std::string_view pointer, const Json& value) {
  const auto now = field_of(*json_, pointer);
  if (now ? *now == value : value.is_null()) return;
  set_field(*json_, pointer, value);
  modified_ = true;
  Q_EMIT changed();
}

void JobDocument::replace(Json json) {
  modified_ = modified_ || json != *json_;
  *json_ = std::move(json);
  Q_EMIT changed();
}

void JobDocument::start_new() {
  *json_ = Json{{"schema", "shardplan.job/1"}, {"checkpointing", "full"}};
  path_.clear();
  modified_ = false;
  Q_EMIT changed();
}

void JobDocument::open(const QString& path) {
  Json json = read_json_file(path.toStdString());
  if (!json.is_object())
    throw InputError({.file = path.toStdString(),
                      .message = "not a job",
                      .expected = "an object with \"model\" and \"cluster\""});
  *json_ = std::move(json);
  path_ = path;
  modified_ = false;
  Q_EMIT changed();
}

void JobDocument::save(const QString& path) {
  Json json = *json_;
  const fs::path from = path_.isEmpty() ? fs::current_path() : folder_of(path_);
  for (const auto* pointer : {"/framework/ds_config", "/model"})
    move_path(json, pointer, from, folder_of(path));
  QSaveFile file(path);
  const std::string out = json.dump(2) + "\n";
  if (!file.open(QIODevice::WriteOnly) ||
      file.write(out.data(), static_cast<qint64>(out.size())) < 0 || !file.commit())
    throw InputError({.file = path.toStdString(), .message = file.errorString().toStdString()});
  *json_ = std::move(json);
  path_ = path;
  modified_ = false;
  Q_EMIT changed();
  Q_EMIT saved();
}

}  // namespace shardplan::gui
