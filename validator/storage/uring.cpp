#include <fmt/format.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "storage/mover_kinds.h"

namespace shardplan::validator {
namespace {

/// One thread has the ring: it gives the kernel chunks as long as there is room, and waits for
/// whatever comes first, a result or the word that chunks have arrived.
class Uring final : public Mover {
 public:
  /// `ring` is set up; `bell` is an eventfd.
  Uring(ChunkQueue& queue, int descriptor, int depth, io_uring ring, int bell)
      : queue_(queue),
        descriptor_(descriptor),
        ring_(ring),
        bell_(bell),
        slots_(static_cast<std::size_t>(depth)) {
    for (std::size_t i = 0; i < slots_.size(); ++i) vacant_.push_back(i);
    queue_.on_change([this] { eventfd_write(bell_, 1); });
    thread_ = std::thread([this] { serve(); });
  }
  ~Uring() override {
    thread_.join();
    queue_.on_change([] {});
    io_uring_queue_exit(&ring_);
    close(bell_);
  }
  std::string description() const override { return "io_uring"; }

 private:
  static constexpr std::uint64_t kBell = ~std::uint64_t{0};

  void serve() {
    listen();
    while (true) {
      while (!vacant_.empty()) {
        std::optional<Chunk> chunk = queue_.try_pop();
        if (!chunk) break;
        const std::size_t slot = vacant_.back();
        vacant_.pop_back();
        slots_[slot] = std::move(*chunk);
        give(slot);
      }
      // Only this thread makes chunks fly: none does, and none will.
      if (queue_.closed() && vacant_.size() == slots_.size()) return;
      io_uring_submit_and_wait(&ring_, 1);
      take_results();
    }
  }

  void take_results() {
    io_uring_cqe* result = nullptr;
    while (io_uring_peek_cqe(&ring_, &result) == 0) {
      const std::uint64_t slot = result->user_data;
      const std::int64_t moved = result->res;
      io_uring_cqe_seen(&ring_, result);
      if (slot == kBell) {
        listen();
      } else if (Chunk& chunk = slots_[slot]; queue_.note(chunk, moved) == Progress::again) {
        give(slot);
      } else {
        chunk = {};
        vacant_.push_back(slot);
      }
    }
  }

  /// There is an entry for each slot and the bell, so that one is always left.
  void give(std::size_t slot) {
    const Chunk& c = slots_[slot];
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    const auto bytes = static_cast<unsigned>(c.bytes);
    const auto offset = static_cast<std::uint64_t>(c.offset);
    if (c.transfer->direction == Direction::read) {
      io_uring_prep_read(entry, descriptor_, c.memory, bytes, offset);
    } else {
      io_uring_prep_write(entry, descriptor_, c.memory, bytes, offset);
    }
    entry->user_data = slot;
  }
  void listen() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, bell_, &rings_, sizeof rings_, 0);
    entry->user_data = kBell;
  }

  ChunkQueue& queue_;
  int descriptor_;
  io_uring ring_;
  int bell_;
  eventfd_t rings_ = 0;
  std::vector<Chunk> slots_;
  std::vector<std::size_t> vacant_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Mover> make_uring(const MoverParts& parts, std::string& why) {
  const int depth = parts.options.queue_depth;
  io_uring ring{};
  const int error = io_uring_queue_init(static_cast<unsigned>(depth) + 1, &ring, 0);
  if (error < 0) {
    why = fmt::format("the kernel refuses io_uring: {}", std::strerror(-error));
    return nullptr;
  }
  const int bell = eventfd(0, EFD_CLOEXEC);
  if (bell < 0) {
    why = fmt::format("no eventfd: {}", std::strerror(errno));
    io_uring_queue_exit(&ring);
    return nullptr;
  }
  return std::make_unique<Uring>(parts.queue, parts.file.descriptor(), depth, ring, bell);
}

}  // namespace shardplan::validator
