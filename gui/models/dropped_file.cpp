#include "models/dropped_file.h"

#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "job/fields.h"

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

/// The file decides what its own keys are about; the job says nothing against it.
void use_ds_config(JobDocument& document, const std::string& path) {
  Json job = document.json();
  job["framework"] = Json{{"name", "deepspeed"}, {"ds_config", path}};
  for (const auto* pointer : {"/precision", "/optimizer", "/gradient_clipping",
                              "/workload/micro_batch", "/workload/gradient_accumulation"})
    set_field(job, pointer, nullptr);
  document.replace(std::move(job));
}

}  // namespace

FileKind kind_of(const Json& json, const std::string& file) {
  if (json.is_object()) {
    if (has_any(json, {"model", "cluster"})) return FileKind::job;
    if (has_any(json, {"model_type", "architectures"})) return FileKind::model;
    if (has_any(json, {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                       "bf16", "fp16", "optimizer", "scheduler"}))
      return FileKind::ds_config;
  }
  throw InputError({.file = file,
                    .message = "neither a job nor a configuration",
                    .expected = "a job, a model's config.json or a ds_config.json"});
}

std::optional<FileKind> take_file(JobDocument& document, const QString& path,
                                  const std::function<bool()>& may_discard) {
  const std::string file = path.toStdString();
  const FileKind kind = kind_of(read_json_file(file), file);
  switch (kind) {
    case FileKind::job:
      if (!may_discard()) return std::nullopt;
      document.open(path);
      break;
    case FileKind::model:
      use_model(document, file);
      break;
    case FileKind::ds_config:
      use_ds_config(document, file);
      break;
  }
  return kind;
}

}  // namespace shardplan::gui
