// Who makes the requests of a queue: a thread with an io_uring, or threads that read and write.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "device/backend.h"
#include "storage/chunk_queue.h"
#include "storage/options.h"
#include "storage/swap_file.h"

namespace shardplan::validator {

/// Works until it is destroyed; the queue is closed before.
class Mover {
 public:
  virtual ~Mover() = default;
  Mover() = default;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  /// "io_uring"
  virtual std::string description() const = 0;
  /// Whether offsets, sizes and addresses may be others than multiples of kStorageBlock.
  virtual bool any_size() const { return false; }
  /// Will often be read to or written from, until it is destroyed; before the first request.
  virtual void use(std::span<std::byte>) {}
};

struct MoverParts {
  ChunkQueue& queue;
  const SwapFile& file;
  const StorageOptions& options;
  Backend* device = nullptr;  ///< whose memory is moved; null: the host's is
};

/// One way to move what a queue asks for.
struct IoPathRow {
  IoPath path;
  const char* name;  ///< what jobs and commands call it
  bool of_host;      ///< moves the host's memory; the device's otherwise
  /// Null where there is no such thing here, and why.
  std::unique_ptr<Mover> (*make)(const MoverParts& parts, std::string& why);
};
/// IoPath::automatic takes the first of the host's that there is.
std::span<const IoPathRow> io_paths();

}  // namespace shardplan::validator
