#include "storage/swap.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "base/format.h"

namespace shardplan::validator {

Swap::Swap(const StorageOptions& options, std::int64_t bytes)
    : Swap(options, std::make_shared<SwapFile>(options.folder, bytes, options.direct)) {}

Swap::Swap(const StorageOptions& options, std::shared_ptr<SwapFile> file, Backend* device)
    : options_(options), file_(std::move(file)) {
  const bool any = options_.path == IoPath::automatic;
  for (const IoPathRow& row : io_paths()) {
    if (any ? !row.of_host : row.path != options_.path) continue;
    std::string why;
    mover_ = row.make({queue_, *file_, options_, device}, why);
    if (mover_ != nullptr) return;
    if (!any)
      throw StorageError(fmt::format("{}: {} is asked for; {}", options_.folder, row.name, why));
    instead_of_ = fmt::format(" ({})", why);
  }
}

Swap::~Swap() {
  queue_.close();
  mover_.reset();
}

std::string Swap::description() const {
  return fmt::format("{}{}, {}, {} requests of {}", mover_->description(), instead_of_,
                     file_->description(), options_.queue_depth,
                     format_bytes(options_.chunk_bytes));
}

void Swap::use(std::span<std::byte> memory) {
  mover_->use(memory);
}

Transfer Swap::begin(Direction direction, std::int64_t offset, std::span<std::byte> memory) {
  const auto bytes = static_cast<std::int64_t>(memory.size());
  assert(mover_->any_size() ||
         (offset % kStorageBlock == 0 && bytes % kStorageBlock == 0 &&
          reinterpret_cast<std::uintptr_t>(memory.data()) % kStorageBlock == 0));
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
