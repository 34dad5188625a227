// Who makes the requests of a queue: a thread with an io_uring, or threads that read and write.
#pragma once

#include <memory>
#include <string>

#include "storage/chunk_queue.h"

namespace shardplan::validator {

/// Works until it is destroyed; the queue is closed before.
class Mover {
 public:
  virtual ~Mover() = default;
  Mover() = default;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
};

/// `depth` requests at once on the open file `descriptor`.
std::unique_ptr<Mover> make_threads(ChunkQueue& queue, int descriptor, int depth);

/// Null where there is no io_uring, and why: the program was built without, or the kernel or a
/// filter of system calls refuses.
std::unique_ptr<Mover> make_uring(ChunkQueue& queue, int descriptor, int depth, std::string& why);

}  // namespace shardplan::validator
