// A job as shardplan-validate can run it: the same model, batch and memory-saving choices on the
// native engine.
#pragma once

#include <QString>
#include <cstdint>
#include <string>

#include "json/document.h"
#include "load/job.h"

namespace shardplan::gui {

enum class EngineDevice : std::uint8_t { host, gpus };

/// `written` is the job's text, `job` what it means. A job of another framework becomes one of the
/// native engine with its ZeRO stage and what it keeps on host and NVMe; one of the native engine
/// stays what it is, but for the device. Files that it names have whole paths.
Json engine_job(const Json& written, const Job& job, const std::string& directory,
                EngineDevice device);

/// Whether a job is the native engine's own.
bool runs_on_engine(const Job& job);

/// The job with a folder for its states on NVMe: `folder`, where it names none.
Json with_storage_here(Json job, const std::string& folder);

/// A model of 170,000 parameters on four ranks of a CPU: a few seconds.
Json example_engine_job();

/// What runs such a job on its machines, from a shell: "torchrun ..." where they are several.
/// `file`: of the job.
QString cluster_command(const Job& job, const QString& file);

/// Files that a job names by relative paths, named from the root.
Json with_whole_paths(Json job, const std::string& directory);

}  // namespace shardplan::gui
