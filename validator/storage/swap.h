// A file of states and parameters that are read and written beside what the caller computes.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "storage/movers.h"
#include "storage/options.h"
#include "storage/swap_file.h"

namespace shardplan::validator {

class Swap {
 public:
  /// Throws StorageError for a folder that is missing, full or cannot be written to.
  Swap(const StorageOptions& options, std::int64_t bytes);
  /// On a file that is there.
  Swap(const StorageOptions& options, std::shared_ptr<SwapFile> file);
  /// What is under way ends first; memory that was given must live until then.
  ~Swap();
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

  /// Begins to read or write a range; offset, size and address are multiples of kStorageBlock.
  Transfer read(std::int64_t offset, std::span<std::byte> memory);
  Transfer write(std::int64_t offset, std::span<std::byte> memory);
  /// Throws StorageError if any part failed.
  void wait(const Transfer& transfer);
  bool is_done(const Transfer& transfer) { return queue_.is_done(transfer); }

  StorageUse use() { return queue_.use(); }
  const SwapFile& file() const { return *file_; }
  /// "io_uring, direct I/O, 32 requests of 1.00 MiB"
  const std::string& description() const { return description_; }

 private:
  Transfer begin(Direction direction, std::int64_t offset, std::span<std::byte> memory);

  StorageOptions options_;
  std::shared_ptr<SwapFile> file_;
  ChunkQueue queue_;
  std::unique_ptr<Mover> mover_;
  std::string description_;
};

}  // namespace shardplan::validator
