// Requests that wait for whoever makes them, and what became of them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace shardplan::validator {

enum class Direction : std::uint8_t { read, write };

/// One range of a file on its way; its chunks are done in any order.
struct TransferState {
  Direction direction = Direction::read;
  std::int64_t chunks_left = 0;
  std::string failure;  ///< of the first chunk that failed; empty: none did
};
using Transfer = std::shared_ptr<TransferState>;

struct Chunk {
  Transfer transfer;
  std::int64_t offset = 0;  ///< in the file
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
};

/// What has been moved, and for how long anything was on its way.
struct StorageUse {
  std::int64_t read = 0, written = 0;  ///< bytes
  double busy_seconds = 0;
};

/// What a chunk's rest is worth trying again for, and what is a failure.
enum class Progress : std::uint8_t { again, done };

class ChunkQueue {
 public:
  /// Called after push() and close(), by who called them.
  void on_change(std::function<void()> call) { on_change_ = std::move(call); }

  void push(const Transfer& transfer, std::int64_t offset, std::byte* memory, std::int64_t bytes,
            std::int64_t chunk_bytes);
  /// The oldest chunk, if one waits.
  std::optional<Chunk> try_pop();
  /// Waits for one; none: the queue is closed.
  std::optional<Chunk> pop();
  /// `moved`: what pread, pwrite or io_uring returned: bytes, or an error number below zero. again:
  /// `chunk` is what is left of it. `told`: of what is below zero and no error number.
  Progress note(Chunk& chunk, std::int64_t moved, const std::string& told = {});
  /// Waits until all chunks of a transfer are done. Throws StorageError for what failed.
  void wait(const Transfer& transfer);
  bool is_done(const Transfer& transfer);
  /// Chunks that nobody has begun are dropped, and their transfers fail.
  void close();
  bool closed();
  StorageUse use();

 private:
  using Clock = std::chrono::steady_clock;
  void finish(const Chunk& chunk, std::string failure);

  std::mutex mutex_;
  std::condition_variable arrived_, finished_;
  std::deque<Chunk> waiting_;
  std::int64_t under_way_ = 0;  ///< chunks that are not done
  bool closed_ = false;
  Clock::time_point busy_since_;
  StorageUse use_;
  std::function<void()> on_change_ = [] {};
};

}  // namespace shardplan::validator
