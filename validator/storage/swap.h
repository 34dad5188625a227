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
  /// On a file that is there. `device`: whose memory is read to and written from; null: the host's.
  Swap(const StorageOptions& options, std::shared_ptr<SwapFile> file, Backend* device = nullptr);
  /// What is under way ends first; memory that was given must live until then.
  ~Swap();
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

  /// Memory that many requests will be about, before the first of them.
  void use(std::span<std::byte> memory);
  /// Begins to read or write a range; offset, size and address are multiples of kStorageBlock,
  /// but of a device.
  Transfer read(std::int64_t offset, std::span<std::byte> memory);
  Transfer write(std::int64_t offset, std::span<std::byte> memory);
  /// Throws StorageError if any part failed.
  void wait(const Transfer& transfer);
  bool is_done(const Transfer& transfer) { return queue_.is_done(transfer); }

  StorageUse use() { return queue_.use(); }
  const SwapFile& file() const { return *file_; }
  const std::shared_ptr<SwapFile>& shared_file() const { return file_; }
  /// "io_uring, direct I/O, 32 requests of 1.00 MiB"
  std::string description() const;

 private:
  Transfer begin(Direction direction, std::int64_t offset, std::span<std::byte> memory);

  StorageOptions options_;
  std::shared_ptr<SwapFile> file_;
  ChunkQueue queue_;
  std::unique_ptr<Mover> mover_;
  std::string instead_of_;  ///< why not by what would have been first
};

}  // namespace shardplan::validator
