// index.json of a checkpoint: how far the run had come, of what run it is, and its files. A folder
// without it is no checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batches.h"
#include "engine/trainer.h"
#include "job/engine_job.h"

namespace shardplan::validator {

struct IndexedFile {
  std::string name;  ///< within the folder
  std::int64_t bytes = 0;
};

/// A checkpoint to go on from.
struct Checkpoint {
  std::string folder;
  TrainingState state;
};

/// The text of the index. `shards`, by rank: none where only whole weights are kept.
std::string index_text(const EngineJob& job, const Tokens& tokens, const TrainingState& state,
                       const std::vector<IndexedFile>& shards,
                       const std::vector<IndexedFile>& whole);

/// The checkpoint at `path`, or the latest of those in it. Throws InputError where there is none,
/// where it is of another run, has no shards, or a file is missing or of another size.
Checkpoint open_checkpoint(const EngineJob& job, const Tokens& tokens, const std::string& path);

}  // namespace shardplan::validator
