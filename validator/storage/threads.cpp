#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "storage/mover_kinds.h"

namespace shardplan::validator {
namespace {

class Threads final : public Mover {
 public:
  Threads(ChunkQueue& queue, int descriptor, int depth) : queue_(queue), descriptor_(descriptor) {
    for (int i = 0; i < depth; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Threads() override {
    for (std::thread& thread : threads_) thread.join();
  }
  std::string description() const override { return "pread and pwrite"; }

 private:
  void serve() {
    while (std::optional<Chunk> chunk = queue_.pop()) {
      while (queue_.note(*chunk, move(*chunk)) == Progress::again) {
      }
    }
  }
  std::int64_t move(const Chunk& c) const {
    const auto bytes = static_cast<std::size_t>(c.bytes);
    const ssize_t moved = c.transfer->direction == Direction::read
                              ? pread(descriptor_, c.memory, bytes, c.offset)
                              : pwrite(descriptor_, c.memory, bytes, c.offset);
    return moved < 0 ? -errno : moved;
  }

  ChunkQueue& queue_;
  int descriptor_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Mover> make_threads(const MoverParts& parts, std::string&) {
  return std::make_unique<Threads>(parts.queue, parts.file.descriptor(), parts.options.queue_depth);
}

}  // namespace shardplan::validator
