// A file that a person opens or drops: a job, a model's config.json, a ds_config.json, measurement
// records or a trainer's own file, told apart by what is in it.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <functional>
#include <optional>

#include "json/document.h"
#include "models/job_document.h"

namespace shardplan::gui {

enum class FileKind : std::uint8_t { job, model, ds_config, record, trainer };

/// Throws InputError naming `file` when it is none of them.
FileKind kind_of(const Json& json, const std::string& file);

/// Opens a job, or puts the path of a configuration into the job; records are only told. A
/// trainer's file (YAML, TOML, JSON, a launch script) becomes the job, on the machine that the job
/// names, and with its model where the file has none; `left_out` gets the file's keys that the job
/// does not count. `may_discard` is asked before another job takes its place; nullopt: the person
/// would rather not. Throws InputError for what cannot be read; the job is then as it was. A file
/// beyond kLargestDocument is not read at all.
std::optional<FileKind> take_file(
    JobDocument& document, const QString& path,
    const std::function<bool()>& may_discard = [] { return true; },
    QStringList* left_out = nullptr);

}  // namespace shardplan::gui
