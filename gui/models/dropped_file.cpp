#include "models/dropped_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/diagnostic.h"
#include "import/import.h"
#include "job/fields.h"
#include "models/record_library.h"
#include "models/text.h"

namespace shardplan::gui {
namespace {

bool has_any(const Json& json, std::initializer_list<const char*> keys) {
  for (const auto* key : keys)
    if (json.contains(key)) return true;
  return false;
}

void use_model(JobDocument& document, const std::string& path) {
  Json job = document.json();
  set_field(job, "/model", path);
  document.replace(std::move(job));
}

bool is_auto(const Json& config, const char* pointer) {
  const Json::json_pointer path(pointer);
  return config.contains(path) && config.at(path) == Json("auto");
}

/// A key that the file has, and does not leave to whoever starts the training.
bool decides(const Json& config, const char* pointer) {
  return config.contains(Json::json_pointer(pointer)) && !is_auto(config, pointer);
}

/// The file decides what its own keys are about, and the job says nothing against it; what is
/// "auto" there stays what the job says.
void use_ds_config(JobDocument& document, const std::string& path, const Json& config) {
  Json job = document.json();
  job["framework"] = Json{{"name", "deepspeed"}, {"ds_config", path}};
  const bool all_samples = decides(config, "/train_batch_size");
  const std::pair<const char*, bool> kept[] = {
      {"/precision", is_auto(config, "/fp16/enabled") || is_auto(config, "/bf16/enabled")},
      {"/optimizer", !decides(config, "/optimizer/type")},
      {"/gradient_clipping", is_auto(config, "/gradient_clipping")},
      {"/workload/micro_batch",
       !all_samples && !decides(config, "/train_micro_batch_size_per_gpu")},
      {"/workload/gradient_accumulation",
       !all_samples && !decides(config, "/gradient_accumulation_steps")}};
  for (const auto& [pointer, is_kept] : kept)
    if (!is_kept) set_field(job, pointer, nullptr);
  document.replace(std::move(job));
}

/// The file as a job: where it runs, and what is trained if it leaves that open, is the job's.
importing::Imported import_trainer(const Json& job, const std::string& file) {
  Json flags = Json::object();
  const auto take = [&](const char* key) {
    const auto said = field_of(job, std::string("/") + key);
    if (said) flags[key] = *said;
    return said.has_value();
  };
  take("cluster");
  try {
    return importing::import_files({file}, "", flags);
  } catch (const InputError& e) {
    if (e.diagnostic().key != "model" || !take("model")) throw;
    importing::Imported imported = importing::import_files({file}, "", flags);
    imported.job["model"] = flags["model"];
    return imported;
  }
}

void use_trainer_file(JobDocument& document, const std::string& file, QStringList* left_out) {
  using Kind = importing::Note::Kind;
  importing::Imported imported = import_trainer(document.json(), file);
  for (const importing::Note& note : imported.notes)
    if (left_out != nullptr && (note.kind == Kind::warning || note.kind == Kind::unknown))
      left_out->push_back(text(note.key));
  document.replace(std::move(imported.job));
}

bool is_json(const QString& path) {
  return path.endsWith(QStringLiteral(".json"), Qt::CaseInsensitive);
}

}  // namespace

FileKind kind_of(const Json& json, const std::string& file) {
  if (json.is_object()) {
    if (is_record(json)) return FileKind::record;
    if (has_any(json, {"model", "cluster"})) return FileKind::job;
    if (has_any(json, {"model_type", "architectures"})) return FileKind::model;
    if (has_any(json, {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                       "bf16", "fp16", "optimizer", "scheduler"}))
      return FileKind::ds_config;
  }
  throw InputError(
      {.file = file,
       .message = "neither a job nor a configuration",
       .expected = "a job, a model's config.json, a ds_config.json or measurement records"});
}

std::optional<FileKind> take_file(JobDocument& document, const QString& path,
                                  const std::function<bool()>& may_discard, QStringList* left_out) {
  const std::string file = path.toStdString();
  Json content;
  FileKind kind = FileKind::trainer;
  if (is_json(path) || !importing::is_trainer_file(file)) {
    content = read_json_file(file);
    try {
      kind = kind_of(content, file);
    } catch (const InputError&) {
      if (!importing::is_trainer_file(file)) throw;
    }
  }
  switch (kind) {
    case FileKind::job:
      if (!may_discard()) return std::nullopt;
      document.open(path);
      break;
    case FileKind::model:
      use_model(document, file);
      break;
    case FileKind::ds_config:
      use_ds_config(document, file, content);
      break;
    case FileKind::trainer:
      use_trainer_file(document, file, left_out);
      break;
    case FileKind::record:
      break;
  }
  return kind;
}

}  // namespace shardplan::gui
