// Weights as Hugging Face names them, put together from the files of all ranks: a unit after the
// other, by one rank, in the file itself. No device takes part, and the host needs no room for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "job/engine_job.h"

namespace shardplan::validator {

/// What the job's checkpoints have of them: "weights/config.json" and "weights/model.safetensors",
/// or of networks with adapters "weights/adapter_config.json" and
/// "weights/adapter_model.safetensors"; and "optimizer/states.safetensors".
std::vector<IndexedFile> whole_files(const EngineJob& job);

/// Writes them into `folder`, from the shards in it. `round` is called after every kRoundBytes or
/// so that are on the disk. Throws StorageError.
void write_whole(const EngineJob& job, const std::string& folder,
                 const std::function<void()>& round);

}  // namespace shardplan::validator
