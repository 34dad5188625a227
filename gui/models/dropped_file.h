// A file that a person opens or drops: a job, a model's config.json, a ds_config.json or
// measurement records, told apart by what is in it.
#pragma once

#include <QString>
#include <cstdint>
#include <functional>
#include <optional>

#include "json/document.h"
#include "models/job_document.h"

namespace shardplan::gui {

enum class FileKind : std::uint8_t { job, model, ds_config, record };

/// Throws InputError naming `file` when it is none of them.
FileKind kind_of(const Json& json, const std::string& file);

/// Opens a job, or puts the path of a configuration into the job; records are only told.
/// `may_discard` is asked before another job takes its place; nullopt: the person would rather not.
/// Throws InputError for what cannot be read; the job is then as it was. A file beyond
/// kLargestDocument is not read at all.
std::optional<FileKind> take_file(
    JobDocument& document, const QString& path,
    const std::function<bool()>& may_discard = [] { return true; });

}  // namespace shardplan::gui
