#include "storage/chunk_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "storage/errors.h"

namespace shardplan::validator {
namespace {

const char* name_of(Direction direction) {
  return direction == Direction::read ? "reading" : "writing";
}

}  // namespace

void ChunkQueue::push(const Transfer& transfer, std::int64_t offset, std::byte* memory,
                      std::int64_t bytes, std::int64_t chunk_bytes) {
  {
    const std::scoped_lock lock(mutex_);
    if (under_way_ == 0) busy_since_ = Clock::now();
    for (std::int64_t at = 0; at < bytes; at += chunk_bytes) {
      waiting_.push_back({transfer, offset + at, memory + at, std::min(chunk_bytes, bytes - at)});
      ++transfer->chunks_left;
      ++under_way_;
    }
  }
  arrived_.notify_all();
  on_change_();
}

std::optional<Chunk> ChunkQueue::try_pop() {
  const std::scoped_lock lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  Chunk chunk = std::move(waiting_.front());
  waiting_.pop_front();
  return chunk;
}

std::optional<Chunk> ChunkQueue::pop() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
  if (waiting_.empty()) return std::nullopt;
  Chunk chunk = std::move(waiting_.front());
  waiting_.pop_front();
  return chunk;
}

Progress ChunkQueue::note(Chunk& chunk, std::int64_t moved, const std::string& told) {
  const Direction direction = chunk.transfer->direction;
  if (moved == -EINTR || moved == -EAGAIN) return Progress::again;
  const std::scoped_lock lock(mutex_);
  if (moved <= 0) {
    const bool reads = direction == Direction::read;
    const std::string why = !told.empty() ? told
                            : moved < 0   ? std::strerror(static_cast<int>(-moved))
                            : reads       ? "the file ends there"
                                          : "nothing was written";
    finish(chunk, fmt::format("{} {} bytes at {} of the swap file failed: {}", name_of(direction),
                              chunk.bytes, chunk.offset, why));
    return Progress::done;
  }
  (direction == Direction::read ? use_.read : use_.written) += moved;
  chunk.offset += moved;
  chunk.memory += moved;
  chunk.bytes -= moved;
  if (chunk.bytes > 0) return Progress::again;
  finish(chunk, "");
  return Progress::done;
}

void ChunkQueue::finish(const Chunk& chunk, std::string failure) {
  TransferState& transfer = *chunk.transfer;
  if (transfer.failure.empty()) transfer.failure = std::move(failure);
  if (--under_way_ == 0)
    use_.busy_seconds += std::chrono::duration<double>(Clock::now() - busy_since_).count();
  if (--transfer.chunks_left == 0) finished_.notify_all();
}

void ChunkQueue::wait(const Transfer& transfer) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return transfer->chunks_left == 0; });
  if (!transfer->failure.empty()) throw StorageError(transfer->failure);
}

bool ChunkQueue::is_done(const Transfer& transfer) {
  const std::scoped_lock lock(mutex_);
  return transfer->chunks_left == 0;
}

void ChunkQueue::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    for (const Chunk& chunk : waiting_) finish(chunk, "the swap file was closed");
    waiting_.clear();
  }
  arrived_.notify_all();
  on_change_();
}

bool ChunkQueue::closed() {
  const std::scoped_lock lock(mutex_);
  return closed_;
}

StorageUse ChunkQueue::use() {
  const std::scoped_lock lock(mutex_);
  StorageUse use = use_;
  if (under_way_ > 0)
    use.busy_seconds += std::chrono::duration<double>(Clock::now() - busy_since_).count();
  return use;
}

}  // namespace shardplan::validator
