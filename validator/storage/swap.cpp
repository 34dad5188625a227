#include "storage/swap.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "base/format.h"

namespace shardplan::validator {

Swap::Swap(const StorageOptions& options, std::int64_t bytes)
    : Swap(options, std::make_shared<SwapFile>(options.folder, bytes, options.direct)) {}

Swap::Swap(const StorageOptions& options, std::shared_ptr<SwapFile> file)
    : options_(options), file_(std::move(file)) {
  std::string how = "pread and pwrite", why;
  if (options_.path != IoPath::threads)
    mover_ = make_uring(queue_, file_->descriptor(), options_.queue_depth, why);
  if (mover_ != nullptr) {
    how = "io_uring";
  } else {
    if (options_.path == IoPath::io_uring)
      throw StorageError(fmt::format("{}: io_uring is asked for; {}", options_.folder, why));
    if (!why.empty()) how += fmt::format(" ({})", why);
    mover_ = make_threads(queue_, file_->descriptor(), options_.queue_depth);
  }
  description_ = fmt::format("{}, {}, {} requests of {}", how, file_->description(),
                             options_.queue_depth, format_bytes(options_.chunk_bytes));
}

Swap::~Swap() {
  queue_.close();
  mover_.reset();
}

Transfer Swap::begin(Direction direction, std::int64_t offset, std::span<std::byte> memory) {
  const auto bytes = static_cast<std::int64_t>(memory.size());
  assert(offset % kStorageBlock == 0 && bytes % kStorageBlock == 0);
  assert(reinterpret_cast<std::uintptr_t>(memory.data()) % kStorageBlock == 0);
  auto transfer = std::make_shared<TransferState>();
  transfer->direction = direction;
  queue_.push(transfer, offset, memory.data(), bytes, options_.chunk_bytes);
  return transfer;
}

Transfer Swap::read(std::int64_t offset, std::span<std::byte> memory) {
  return begin(Direction::read, offset, memory);
}

Transfer Swap::write(std::int64_t offset, std::span<std::byte> memory) {
  return begin(Direction::write, offset, memory);
}

void Swap::wait(const Transfer& transfer) {
  try {
    queue_.wait(transfer);
  } catch (const StorageError& error) {
    throw StorageError(fmt::format("{}: {}", options_.folder, error.what()));
  }
}

}  // namespace shardplan::validator
