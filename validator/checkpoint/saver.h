// Writes a run's checkpoints, with all ranks at once.
#pragma once

#include <memory>

#include "checkpoint/folder.h"
#include "checkpoint/lockstep.h"
#include "checkpoint/shard_layout.h"
#include "data/batches.h"
#include "storage/output_file.h"

namespace shardplan::validator {

/// What a checkpoint takes.
struct SavedBytes {
  std::int64_t device_peak = 0;  ///< of the rank's arena, while it is written
  std::int64_t staging = 0;      ///< of the host's memory, of this rank
  std::int64_t shard = 0;        ///< of this rank's file on the disk; 0: it is made whole and goes
  std::int64_t whole = 0;        ///< of files of whole tensors on the disk; rank 0 writes them
};

/// Without a run: but for the device's.
SavedBytes planned_checkpoint(const EngineJob& job, int rank);
/// Of the disk, for one checkpoint of all ranks, while it is written. The index is not counted.
std::int64_t checkpoint_room(const EngineJob& job);

/// The last checkpoint that a run wrote.
struct SaveReport {
  std::int64_t count = 0;  ///< that were written
  SavedBytes bytes;
  std::int64_t all_files = 0;  ///< bytes of all ranks' files and of the index
  double seconds = 0;
  std::string folder;
};

class Saver {
 public:
  /// All ranks make one at the same time. Throws StorageError where the folder cannot be made or
  /// has too little room for one checkpoint.
  Saver(const EngineJob& job, Tokens tokens, Trainer& trainer, Communicator& world);

  bool due(std::int64_t step) const { return job_.run.save.due(step, job_.run.steps); }
  /// After a step; all ranks call it. It is there whole or not at all: throws StorageError.
  void save();
  const SaveReport& report() const { return report_; }

 private:
  std::unique_ptr<OutputFile> make_file(const PartialFolder& folder);
  void finish(PartialFolder& folder);

  const EngineJob& job_;
  Tokens tokens_;
  Trainer& trainer_;
  int rank_;
  Lockstep ranks_;
  ShardFile shard_;
  SaveReport report_;
};

}  // namespace shardplan::validator
