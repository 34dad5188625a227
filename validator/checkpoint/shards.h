// A rank's own file of a checkpoint, written from its trainer and read into one.
#pragma once

#include <string>

#include "checkpoint/index.h"
#include "checkpoint/lockstep.h"
#include "checkpoint/shard_layout.h"
#include "storage/output_file.h"

namespace shardplan::validator {

struct Written {
  std::int64_t bytes = 0;          ///< of the file
  std::int64_t staging_bytes = 0;  ///< of the host that were in use
};

/// `out` is as large as the file's layout. All ranks call it. Throws StorageError.
Written write_shard(Trainer& trainer, const ShardFile& file, OutputFile& out, Lockstep& ranks);

/// Values of a checkpoint into a trainer that has none yet; all ranks call it. Throws InputError,
/// which names the file and the tensor, for what is missing or has another shape.
void restore_rank(const EngineJob& job, const Checkpoint& checkpoint, int rank, Trainer& trainer);

}  // namespace shardplan::validator
