#include "checkpoint/saver.h"

#include <chrono>
#include <exception>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/index.h"
#include "checkpoint/shards.h"
#include "checkpoint/values.h"
#include "checkpoint/whole.h"
#include "storage/errors.h"
#include "storage/room.h"

namespace shardplan::validator {
namespace {

void write_text(const std::string& path, std::string_view text) {
  OutputFile out(path, std::ssize(text));
  out.write(0, std::as_bytes(std::span(text)));
  out.finish();
}

std::int64_t bytes_of(const std::vector<IndexedFile>& files) {
  std::int64_t bytes = 0;
  for (const IndexedFile& file : files) bytes += file.bytes;
  return bytes;
}

}  // namespace

SavedBytes planned_checkpoint(const EngineJob& job, int rank) {
  const ShardFile file = shard_file(job, rank, contents_of(job));
  SavedBytes bytes{.staging = staging_bytes(file.tensors)};
  if (job.run.save.sharded) bytes.shard = file.layout.file_bytes();
  if (rank == 0) bytes.whole = bytes_of(whole_files(job));
  return bytes;
}

std::int64_t checkpoint_room(const EngineJob& job) {
  std::int64_t bytes = bytes_of(whole_files(job));
  for (int rank = 0; rank < job.plan().cluster.world(); ++rank)
    bytes += shard_file(job, rank, contents_of(job)).layout.file_bytes();
  return bytes;
}

Saver::Saver(const EngineJob& job, Tokens tokens, Trainer& trainer, Communicator& world)
    : job_(job),
      tokens_(std::move(tokens)),
      trainer_(trainer),
      rank_(world.rank()),
      ranks_(trainer.runtime().device, world, trainer.scalar()),
      shard_(shard_file(job, rank_, contents_of(job))) {
  if (rank_ == 0) {
    const std::string& folder = job_.run.save.folder;
    prepare_folder(folder);
    const std::int64_t room = checkpoint_room(job_);
    if (room > free_bytes(folder)) refuse_room(folder, room, "too little room for a checkpoint");
  }
  ranks_.wait();
}

void Saver::save() {
  const auto start = std::chrono::steady_clock::now();
  Arena& arena = trainer_.runtime().arena;
  arena.begin_phase(Phase::save);
  trainer_.settle();
  const std::int64_t step = trainer_.state().steps;
  PartialFolder folder(job_.run.save.folder, step, rank_ == 0);
  ranks_.wait();
  const std::unique_ptr<OutputFile> out = make_file(folder);
  const Written written = write_shard(trainer_, shard_, *out, ranks_);
  ranks_.wait();
  if (rank_ == 0) finish(folder);
  ranks_.wait();
  folder.placed();
  arena.end_phase();
  ++report_.count;
  report_.bytes.device_peak = arena.profile().of(Phase::save).peak;
  report_.bytes.staging = written.staging_bytes;
  report_.bytes.shard = job_.run.save.sharded ? written.bytes : 0;
  report_.folder = checkpoint_folder(job_.run.save.folder, step);
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Takes the room of this rank's file. All ranks hear of one that has none before any of them
/// cleans up: what it finds removed would be a second error, which hides the first.
std::unique_ptr<OutputFile> Saver::make_file(const PartialFolder& folder) {
  std::unique_ptr<OutputFile> out;
  std::exception_ptr failure;
  try {
    folder.check_shared();
    out = std::make_unique<OutputFile>(folder.path(shard_name(rank_)), shard_.layout.file_bytes());
  } catch (const StorageError&) {
    failure = std::current_exception();
  }
  const bool any_failed = ranks_.any_busy(failure != nullptr);
  if (failure) std::rethrow_exception(failure);
  if (any_failed) throw PeerFailure("another rank has no room for its part of a checkpoint");
  return out;
}

/// By rank 0, when all shards are on the disk.
void Saver::finish(PartialFolder& folder) {
  const auto bytes_on_disk = [&](const std::string& name) {
    return static_cast<std::int64_t>(std::filesystem::file_size(folder.path(name)));
  };
  std::vector<IndexedFile> shards, whole;
  if (job_.run.save.whole) {
    write_whole(job_, folder.path(""), [&] { ranks_.any_busy(true); });
    for (const IndexedFile& file : whole_files(job_))
      whole.push_back({file.name, bytes_on_disk(file.name)});
  }
  for (int rank = 0; rank < job_.plan().cluster.world(); ++rank) {
    const std::string name = shard_name(rank);
    if (job_.run.save.sharded)
      shards.push_back({name, bytes_on_disk(name)});
    else
      std::filesystem::remove(folder.path(name));
  }
  const std::string index = index_text(job_, tokens_, trainer_.state(), shards, whole);
  write_text(folder.path(kIndexName), index);
  folder.place();
  report_.bytes.whole = bytes_of(whole);
  report_.all_files = bytes_of(shards) + report_.bytes.whole + std::ssize(index);
}

}  // namespace shardplan::validator
